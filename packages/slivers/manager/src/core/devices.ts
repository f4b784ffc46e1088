import type { Observed } from "./plan.ts";
import type { State } from "./record.ts";

/** Devices that slivers hold. A sliver that is being removed holds its devices until nothing of it is left on the machine. */
export function heldDevices(records: State["records"], observed: readonly Observed[]): string[] {
  const lives = new Set([...records.values()].map(({ local }) => local.incarnation));
  return [
    ...[...records.values()].flatMap(({ local }) => local.devices ?? []),
    ...observed.flatMap(({ incarnation, devices = [] }) => (lives.has(incarnation) ? [] : devices)),
  ];
}

/** One free device of each class; undefined: one of them has none left. A device that is listed twice may be held twice. */
export function freeDevices(
  classes: readonly string[] = [],
  all: Readonly<Record<string, readonly string[]>>,
  held: readonly string[],
): readonly string[] | undefined {
  const own: string[] = [];
  for (const name of classes) {
    const free = Object.hasOwn(all, name) ? [...all[name]!] : [];
    for (const one of [...held, ...own]) if (free.includes(one)) free.splice(free.indexOf(one), 1);
    const [first] = free;
    if (first === undefined) return undefined;
    own.push(first);
  }
  return own;
}
