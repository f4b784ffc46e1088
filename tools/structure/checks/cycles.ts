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
 * No cycle of imports, those of types included: files of a cycle can be read, tested and moved only together. Of files that all reach one
 * another the shortest cycle is named; when that one is gone, the next.
 */
export function checkCycles(workspace: Workspace): Finding[] {
  const graph = graphOf(workspace);
  return circlesOf(graph).map((files) => {
    const way = shortestWay(graph, files[0]!, files[0]!)!;
    const message = `imports form a cycle: ${way.join(" -> ")} -> ${way[0]}`;
    return { rule: "cycle", severity: "error", path: way[0]!, message };
  });
}

function graphOf(workspace: Workspace): Graph {
  const known = new Set(workspace.files.map((file) => file.path));
  const edges = (file: SourceFile) =>
    file.imports
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

/** The sets of files that all reach one another, each with two files or one that imports itself. */
function circlesOf(graph: Graph): string[][] {
  const circles: string[][] = [];
  const done = new Set<string>();
  const back = new Map<string, string[]>([...graph.keys()].map((path) => [path, []]));
  for (const [path, targets] of graph) for (const target of targets) back.get(target)!.push(path);
  for (const start of graph.keys()) {
    if (done.has(start)) continue;
    const [after, before] = [reach(graph, start), reach(back, start)];
    const circle = [...after].filter((path) => before.has(path));
    for (const path of circle) done.add(path);
    if (circle.length > 1 || graph.get(start)!.includes(start)) circles.push(circle);
  }
  return circles;
}

/** The shortest path of files from `start` to `end`; `end` is left out. */
function shortestWay(graph: Graph, start: string, end: string): string[] | undefined {
  const from = new Map<string, string>();
  const queue = [start];
  for (const path of queue) {
    for (const next of graph.get(path) ?? []) {
      if (next === end) return wayTo(from, start, path);
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

function reach(graph: Graph, start: string): Set<string> {
  const seen = new Set<string>([start]);
  for (const path of seen) for (const next of graph.get(path) ?? []) seen.add(next);
  return seen;
}
