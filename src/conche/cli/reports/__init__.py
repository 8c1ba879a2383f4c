"""What people see: tables, plots, progress, JSON. Every command loads what it needs of it."""
