const PREFIX = "NODEPOOL_";

/**
 * Puts the values of `NODEPOOL_*` variables in place of `%(NODEPOOL_*)`, in the text before it is parsed (docs/contract/config.md,
 * "Environment"): one scan per variable, in the order of the environment.
 */
export function substitute(text: string, env: Readonly<Record<string, string | undefined>>): string {
  let result = text;
  for (const [name, value] of Object.entries(env)) {
    if (name.startsWith(PREFIX) && value !== undefined) result = result.replaceAll(`%(${name})`, () => value);
  }
  return result;
}

/** Placeholders that no variable filled, with the offsets at which they stand. */
export function leftovers(text: string): readonly { readonly name: string; readonly offset: number }[] {
  return Array.from(text.matchAll(/%\((NODEPOOL_[^)\n]*)\)/g), (match) => ({
    name: match[1] as string,
    offset: match.index,
  }));
}
