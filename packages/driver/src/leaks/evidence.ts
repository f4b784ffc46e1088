import type { Evidence, Tag } from "../contract.ts";

const MOST = 20_000;

/** Evidence for as long as the process lives, the newest of it: for tests, and where nothing durable is handed out. */
export function memoryEvidence(most = MOST): Evidence {
  const tags = new Map<string, Tag>();
  return {
    record(type, id, tag) {
      const key = `${type} ${id}`;
      tags.delete(key);
      tags.set(key, tag);
      if (tags.size > most) tags.delete(tags.keys().next().value!);
    },
    tagOf: (type, id) => tags.get(`${type} ${id}`) ?? null,
  };
}
