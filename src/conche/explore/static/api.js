// Questions to the server. Of many moves of a slider only the newest is asked, one at a time.
export class Refused extends Error {}

export async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Refused("The server does not answer: has conche explore ended?");
  }
  const data = await answer.json().catch(() => ({ error: `status ${answer.status}` }));
  if (!answer.ok) throw new Refused(data.error ?? `status ${answer.status}`);
  return data;
}

export function latest(show, fail) {
  let wanted = null;
  let busy = false;
  const run = async () => {
    busy = true;
    while (wanted !== null) {
      const path = wanted;
      wanted = null;
      try {
        const data = await ask(path);
        if (wanted === null) show(data);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        if (wanted === null) fail(error.message);
      }
    }
    busy = false;
  };
  return (path) => {
    wanted = path;
    if (!busy) run();
  };
}

export function query(state, keys) {
  return new URLSearchParams(keys.map((key) => [key, state[key]])).toString();
}
