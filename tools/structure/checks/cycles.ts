import { posix } from "node:path";
import type { Finding } from "../findings.ts";
import {
  isRelative,
  resolveRelative,
  type SourceFile,
  splitSpecifier,
  type Workspace,
} from "../workspace.ts";

type Graph = ReadonlyMap<string, readonly string[]>;

/**
 * No cycle of imports that exist at run time; cycles that only types close are allowed inside one folder. A file that
 * takes part in a cycle can be read, tested and loaded only together with all the others.
 */
export function checkCycles(workspace: Workspace): Finding[] {
  const values = cyclesOf(graphOf(workspace, false));
  const all = cyclesOf(graphOf(workspace, true));
  const known = new Set(values.flat());
  const wide = all.filter(
    (files) =>
      !files.some((path) => known.has(path)) && new Set(files.map((path) => posix.dirname(path))).size > 1,
  );
  return [
    ...values.map((files) => finding(files, "imports form a cycle")),
    ...wide.map((files) => finding(files, "imports of types form a cycle across folders")),
  ];
}

function finding(files: readonly string[], what: string): Finding {
  const message = `${what}: ${files.join(" -> ")} -> ${files[0]}`;
  return { rule: "cycle", severity: "error", path: files[0]!, message };
}

function graphOf(workspace: Workspace, withTypes: boolean): Graph {
  const known = new Set(workspace.files.map((file) => file.path));
  const edges = (file: SourceFile) =>
    file.imports
      .filter((one) => withTypes || !one.typeOnly)
      .map((one) =>
        isRelative(one.specifier) ? resolveRelative(file, one.specifier) : doorOf(workspace, one.specifier),
      )
      .filter((target): target is string => target !== undefined && known.has(target));
  return new Map(workspace.files.map((file) => [file.path, edges(file)]));
}

/** The file behind `@nodeyard/x` or `@nodeyard/x/sub`, from the package's `exports`. */
function doorOf(workspace: Workspace, specifier: string): string | undefined {
  const { name, subpath } = splitSpecifier(specifier);
  const target = workspace.packages.find((one) => one.name === name);
  const door = target?.manifest.exports?.[subpath];
  return target !== undefined && typeof door === "string" ? posix.join(target.folder, door) : undefined;
}

/** One shortest cycle of each strongly connected part of the graph. */
function cyclesOf(graph: Graph): string[][] {
  const cycles: string[][] = [];
  const done = new Set<string>();
  for (const start of graph.keys()) {
    if (done.has(start)) continue;
    const cycle = shortestCycle(graph, start);
    if (cycle === undefined) continue;
    cycles.push(cycle);
    for (const path of connected(graph, start)) done.add(path);
  }
  return cycles;
}

/** The way from `start` back to `start` over the fewest files. */
function shortestCycle(graph: Graph, start: string): string[] | undefined {
  const from = new Map<string, string>();
  const queue = [start];
  for (const path of queue) {
    for (const next of graph.get(path) ?? []) {
      if (next === start) return wayTo(from, start, path);
      if (from.has(next)) continue;
      from.set(next, path);
      queue.push(next);
    }
  }
  return undefined;
}

function wayTo(from: ReadonlyMap<string, string>, start: string, end: string): string[] {
  const way = [end];
  for (let path = end; path !== start; ) {
    path = from.get(path)!;
    way.unshift(path);
  }
  return way;
}

/** The files that `start` reaches and that reach `start`. */
function connected(graph: Graph, start: string): string[] {
  return [...reach(graph, start)].filter((path) => reach(graph, path).has(start));
}

function reach(graph: Graph, start: string): Set<string> {
  const seen = new Set<string>([start]);
  for (const path of seen) for (const next of graph.get(path) ?? []) seen.add(next);
  return seen;
}
