"""Small things that several rooms need: array types, argument checks, words, files, extras."""
