import { type Member, members } from "./members.ts";

/**
 * Replaces the values of some keys in the JSON object `text` and appends missing keys. All other text stays byte for byte, so that fields
 * of other programs survive (rule 7). A key of `ensure` gets its text when it is absent or null. Of a duplicate key the last value is
 * replaced, because readers use that one.
 */
export function splice(
  text: string,
  values: ReadonlyMap<string, string>,
  ensure: ReadonlyMap<string, string>,
): string {
  // Only these: a record has some forty members, and is changed several times in the life of a node.
  const all = members(text, (key) => values.has(key) || ensure.has(key));
  const places = new Map<string, Member>();
  for (const member of all) places.set(member.key, member);
  let out = "";
  let copied = 0;
  for (const member of all) {
    const value = values.get(member.key) ?? ensured(text, member, ensure);
    if (value === undefined || places.get(member.key) !== member) continue;
    out += text.slice(copied, member.start) + value;
    copied = member.end;
  }
  const added: string[] = [];
  for (const [key, value] of values) if (!places.has(key)) added.push(`${JSON.stringify(key)}: ${value}`);
  for (const [key, value] of ensure) {
    if (!places.has(key) && !values.has(key)) added.push(`${JSON.stringify(key)}: ${value}`);
  }
  if (added.length === 0) return out + text.slice(copied);
  const end = text.slice(0, text.lastIndexOf("}")).trimEnd().length;
  const comma = text[end - 1] === "{" ? "" : ", ";
  return `${out}${text.slice(copied, end)}${comma}${added.join(", ")}${text.slice(end)}`;
}

function ensured(
  text: string,
  { key, start, end }: Member,
  ensure: ReadonlyMap<string, string>,
): string | undefined {
  return end - start === 4 && text.startsWith("null", start) ? ensure.get(key) : undefined;
}
