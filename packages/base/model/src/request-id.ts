/** The two parts of a request's name. They stay strings, because Nodepool compares them as strings. */
export interface RequestId {
  readonly priority: string;
  readonly sequence: string;
}

/**
 * Splits `100-0000000005` (docs/contract/tree.md, "Request ids"). Undefined unless the name has exactly one dash and a decimal sequence.
 */
export function parseRequestId(id: string): RequestId | undefined {
  const dash = dashOf(id);
  return dash < 1 ? undefined : { priority: id.slice(0, dash), sequence: id.slice(dash + 1) };
}

/** Offset of the dash; -1 for a name that is not a request id. */
function dashOf(id: string): number {
  const dash = id.indexOf("-");
  if (dash < 1 || dash === id.length - 1) return -1;
  for (let at = dash + 1; at < id.length; at++) {
    const code = id.charCodeAt(at);
    if (code < 48 || code > 57) return -1;
  }
  return dash;
}

/**
 * The order in which launchers consider requests: priority as text, relative priority, sequence as text
 * (docs/contract/launcher.md, "Order of requests"). Invalid names come last.
 */
export function compareRequestIds(
  a: string,
  aRelativePriority: number,
  b: string,
  bRelativePriority: number,
): number {
  // Fast path for sorting queues: names of the same form and relative priority compare as whole strings.
  const dash = dashOf(a);
  if (aRelativePriority === bRelativePriority && dash > 0 && dashOf(b) === dash) return compareText(a, b);
  const [left, right] = [parseRequestId(a), parseRequestId(b)];
  if (left === undefined || right === undefined) {
    return Number(left === undefined) - Number(right === undefined) || compareText(a, b);
  }
  return (
    compareText(left.priority, right.priority) ||
    aRelativePriority - bRelativePriority ||
    compareText(left.sequence, right.sequence)
  );
}

/** The order of requests, as `compareRequestIds`. */
export function compareRequests(
  a: { readonly id: string; readonly relativePriority: number },
  b: { readonly id: string; readonly relativePriority: number },
): number {
  return compareRequestIds(a.id, a.relativePriority, b.id, b.relativePriority);
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
