import { type Random, seededRandom } from "@nodeyard/runtime";

/** Random numbers for each part of a run by name: if a part draws once more, or a part is added, the others draw the same as before. */
export function streams(seed: number): (name: string) => Random {
  return (name) => seededRandom(hash(`${seed} ${name}`));
}

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value >>> 0;
}

export function pick<T>(random: Random, from: readonly T[]): T {
  return from[Math.floor(random.float() * from.length)]!;
}

export function between(random: Random, least: number, most: number): number {
  return least + random.float() * (most - least);
}

/** The same items in random order. */
export function shuffled<T>(random: Random, things: readonly T[]): T[] {
  const rest = [...things];
  for (let at = rest.length - 1; at > 0; at--) {
    const other = Math.floor(random.float() * (at + 1));
    [rest[at], rest[other]] = [rest[other]!, rest[at]!];
  }
  return rest;
}
