/**
 * Where the machines of a provider are, in words of its cloud: `account` and `region`, `server` of a cluster, `folder`. A machine of
 * another place cannot be seen from here, so that nothing which a cloud says here is true of it.
 */
export type Place = Readonly<Record<string, string>>;

/** Whether both may be the same place: a word that only one of them has says nothing. */
export function samePlace(a: Place, b: Place): boolean {
  return Object.entries(a).every(([word, value]) => b[word] === undefined || b[word] === value);
}

/** A place for people: "region us-west-2, account 123456789012". */
export function placeText(place: Place): string {
  const words = Object.entries(place).map(([word, value]) => `${word} ${value}`);
  return words.length === 0 ? "no place" : words.join(", ");
}
