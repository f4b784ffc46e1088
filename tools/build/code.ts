import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, isAbsolute, join, posix, relative } from "node:path";
import { type Plugin, rolldown } from "rolldown";
import type { SourcePackage } from "./packages.ts";
import { rewriteUrls } from "./specifiers.ts";

/** Files that are started without an import: a worker by its URL, a program by the plain file that checks Node's version first. */
const STARTED = /(?:new URL|require)\("(\.{1,2}\/[^"\n]+)\.ts"/g;
const PLACE = "__place_of_module__";

/**
 * The JavaScript of a package, in its `dist/src`: one file per door, program and worker, in the place of its source, and shared or lazily
 * imported code in `chunks`. So a process reads a handful of files instead of hundreds. The private packages that are its parts are in it, as
 * if each were a folder of its `src`; other packages stay outside, so that a process has one copy of each. A module that is imported only
 * for its effect is left out.
 */
export async function writeCode(
  { path, manifest }: SourcePackage,
  dist: string,
  parts: readonly SourcePackage[] = [],
): Promise<void> {
  const source = join(path, "src");
  const isSource = (file: string) => file.endsWith(".ts");
  const doors = parts.length > 0 ? [] : Object.values(manifest.exports ?? {}).filter(isSource);
  const programs = Object.values(manifest.bin ?? {}).filter(isSource);
  const sources = new Map([
    [source, ""],
    ...parts.map((one) => [join(one.path, "src"), placeOf(one)] as const),
  ]);
  const started = [...sources.keys()].flatMap(startedFiles);
  const isProgram = (file: string) => file.startsWith(join(source, "bin/"));
  // Apart, because otherwise a program that needs one export of a door would load everything that the door exports.
  const sets = [
    {
      files: [...doors.map((file) => join(path, file)), ...started.filter((file) => !isProgram(file))],
      chunks: "chunks",
    },
    {
      files: [...programs.map((file) => join(path, file)), ...started.filter(isProgram)],
      chunks: "bin/chunks",
    },
  ];
  for (const { files, chunks } of sets)
    if (files.length > 0) await bundle(sources, parts, files, join(dist, "src"), chunks);
}

/** The folder of a part's code in the package that contains it. */
export function placeOf({ manifest }: SourcePackage): string {
  return basename(manifest.name);
}

/** By folder of sources: the folder of its code. */
type Places = ReadonlyMap<string, string>;

function builtPath(sources: Places, file: string): string {
  const [from, to] = [...sources].find(([folder]) => file.startsWith(`${folder}/`)) ?? ["/", "elsewhere"];
  return join(to, relative(from, file)).replace(/\.ts$/, "");
}

async function bundle(
  sources: Places,
  parts: readonly SourcePackage[],
  files: readonly string[],
  dir: string,
  chunks: string,
): Promise<void> {
  const inside = parts.map(({ manifest }) => manifest.name);
  const build = await rolldown({
    input: Object.fromEntries(files.map((file) => [builtPath(sources, file), file])),
    platform: "node",
    logLevel: "warn",
    external: (id) =>
      /^[^.]/.test(id) && !isAbsolute(id) && !inside.some((name) => id === name || id.startsWith(`${name}/`)),
    treeshake: { moduleSideEffects: false },
    plugins: [placesOf(sources), plainJson],
  });
  try {
    await build.write({
      dir,
      format: "esm",
      entryFileNames: "[name].js",
      chunkFileNames: `${chunks}/[name].js`,
    });
  } finally {
    await build.close();
  }
}

function startedFiles(source: string): string[] {
  const files = readdirSync(source, { withFileTypes: true, recursive: true });
  return files
    .filter((file) => file.isFile() && /\.(ts|cjs)$/.test(file.name))
    .flatMap((file) => {
      const text = readFileSync(join(file.parentPath, file.name), "utf8");
      return [...text.matchAll(STARTED)].map(([, name]) => join(file.parentPath, `${name}.ts`));
    });
}

/** JSON has a default export only, as in Node: with named exports too, two files of rolldown 1.2 that share it import missing names. */
const plainJson: Plugin = {
  name: "plain-json",
  transform: (code, id) =>
    id.endsWith(".json") ? { code: `export default ${code}`, moduleType: "js" } : null,
};

/** `import.meta.url` stays the place of the source file, although its code has moved: workers and data are found from there. */
function placesOf(sources: Places): Plugin {
  const place = new RegExp(`${PLACE}\\("([^"]+)"\\)`, "g");
  return {
    name: "places",
    transform(code, id) {
      if (!code.includes("import.meta.url")) return null;
      const built = `${builtPath(sources, id)}.js`;
      return rewriteUrls(code).replaceAll("import.meta.url", `${PLACE}(${JSON.stringify(built)})`);
    },
    renderChunk(code, chunk) {
      if (!code.includes(PLACE)) return null;
      const from = dirname(chunk.fileName);
      const here = (_: string, built: string) =>
        `new URL(${JSON.stringify(`./${posix.relative(from, built)}`)}, import.meta.url).href`;
      return code.replace(place, here);
    },
  };
}
