import { type Member, members } from "./members.ts";

/** Where the values of an object's members are in its text. */
interface Places {
  /** The number of the member with a key, from 0; of a duplicate key the last one's, because readers use that one. */
  readonly numbers: ReadonlyMap<string, number>;
  /** Start and end of each value, in the order of the text. */
  readonly offsets: readonly number[];
}

/** What takes the place of a member's value. */
interface Replacement {
  readonly number: number;
  readonly value: string;
}

const NOTHING: ReadonlyMap<string, string> = new Map();

/**
 * The JSON text of an object. It is searched for its members once; the texts that are made of it know where theirs are. A record has some
 * forty, and is changed several times in the life of a node.
 */
export class ObjectText {
  readonly text: string;
  #places: Places | undefined;

  /** `text` is not checked: the caller has parsed it. */
  constructor(text: string, places?: Places) {
    this.text = text;
    this.#places = places;
  }

  /**
   * The same text with other values of some keys, and with missing keys at its end. All other text stays byte for byte, so that fields of
   * other programs survive (rule 7). A key of `ensure` gets its text when it is absent or null.
   */
  with(values: ReadonlyMap<string, string>, ensure: ReadonlyMap<string, string> = NOTHING): ObjectText {
    this.#places ??= placesIn(this.text);
    const { numbers } = this.#places;
    const replaced: Replacement[] = [];
    let added = "";
    for (const [key, value] of values) {
      const number = numbers.get(key);
      if (number === undefined) added += `, ${JSON.stringify(key)}: ${value}`;
      else replaced.push({ number, value });
    }
    for (const [key, value] of ensure) {
      if (values.has(key)) continue;
      const number = numbers.get(key);
      if (number === undefined) added += `, ${JSON.stringify(key)}: ${value}`;
      else if (this.#isNull(this.#places, number)) replaced.push({ number, value });
    }
    const changed = replaced.length === 0 ? this : this.#replaced(this.#places, replaced);
    return added === "" ? changed : new ObjectText(appended(changed.text, added));
  }

  #isNull({ offsets }: Places, number: number): boolean {
    const start = offsets[2 * number]!;
    return offsets[2 * number + 1]! - start === 4 && this.text.startsWith("null", start);
  }

  #replaced({ numbers, offsets }: Places, replaced: Replacement[]): ObjectText {
    replaced.sort((one, other) => one.number - other.number);
    // A copy has its final size at once; an array that grows reserves more than it needs, and thousands of these are kept.
    const moved = [...offsets];
    let out = "";
    let copied = 0;
    let shift = 0;
    let next = 0;
    for (let at = 0; at < offsets.length; at += 2) {
      const start = offsets[at]!;
      const end = offsets[at + 1]!;
      moved[at] = start + shift;
      const one = replaced[next];
      if (one !== undefined && 2 * one.number === at) {
        out += this.text.slice(copied, start) + one.value;
        copied = end;
        shift += one.value.length - (end - start);
        next++;
      }
      moved[at + 1] = end + shift;
    }
    return new ObjectText(out + this.text.slice(copied), { numbers, offsets: moved });
  }
}

function placesIn(text: string): Places {
  const found = members(text);
  return { numbers: numbersOf(found), offsets: found.flatMap(({ start, end }) => [start, end]) };
}

let lastKeys: readonly string[] = [];
let lastNumbers: ReadonlyMap<string, number> = new Map();

/** Texts with the same keys in the same order share one map: thousands of requests come from one client, and each map takes a kilobyte. */
function numbersOf(found: readonly Member[]): ReadonlyMap<string, number> {
  if (found.length !== lastKeys.length || found.some(({ key }, number) => key !== lastKeys[number])) {
    lastKeys = found.map(({ key }) => key);
    lastNumbers = new Map(lastKeys.map((key, number) => [key, number]));
  }
  return lastNumbers;
}

/** `added` begins with a comma. */
function appended(text: string, added: string): string {
  const end = text.slice(0, text.lastIndexOf("}")).trimEnd().length;
  const isFirst = text[end - 1] === "{";
  return `${text.slice(0, end)}${isFirst ? added.slice(2) : added}${text.slice(end)}`;
}
