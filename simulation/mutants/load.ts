import { registerHooks } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { onDisk } from "./files.ts";
import { fileOf, type Mutant, mutated } from "./mutant.ts";

/** From now on this thread loads the mutant. The product must not have been loaded yet. The returned function says whether the file was. */
export function loadMutant(mutant: Mutant): () => boolean {
  const wanted = pathToFileURL(onDisk(fileOf(mutant))).href;
  let loaded = false;
  registerHooks({
    load(url, context, nextLoad) {
      const found = nextLoad(url, context);
      if (url !== wanted) return found;
      loaded = true;
      return { ...found, source: mutated(mutant, Buffer.from(found.source as Uint8Array).toString()) };
    },
  });
  return () => loaded;
}

/** The same for tests, which Vite loads. */
export function mutantPlugin(mutant: Mutant) {
  const file = onDisk(fileOf(mutant));
  let loaded = false;
  return {
    wasLoaded: () => loaded,
    plugin: {
      name: "mutant",
      enforce: "pre" as const,
      transform(code: string, id: string) {
        const path = id.startsWith("file:") ? fileURLToPath(id) : id;
        if (path.split("?", 1)[0] !== file) return undefined;
        loaded = true;
        return { code: mutated(mutant, code), map: null };
      },
    },
  };
}
