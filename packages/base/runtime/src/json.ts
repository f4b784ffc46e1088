/** The value of a JSON text; undefined for a text that is not JSON, as in a file that a crash cut off. */
export function jsonOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
