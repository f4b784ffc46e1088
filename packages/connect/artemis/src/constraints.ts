type Value = number | string;

/** The operators of tmt's `hardware`, the longer ones of one beginning first. */
const OPERATORS: Readonly<Record<string, (known: Value, wanted: Value) => boolean>> = {
  "==": (known, wanted) => known === wanted,
  "!=": (known, wanted) => known !== wanted,
  ">=": (known, wanted) => known >= wanted,
  "<=": (known, wanted) => known <= wanted,
  "=~": (known, wanted) => matches(String(wanted), String(known)),
  "!~": (known, wanted) => !matches(String(wanted), String(known)),
  "=": (known, wanted) => known === wanted,
  ">": (known, wanted) => known > wanted,
  "<": (known, wanted) => known < wanted,
  "~": (known, wanted) => matches(String(wanted), String(known)),
};

/** Bytes of a number without a unit, where it has one by the last key of its path (tmt's specification of `hardware`). */
const USUAL_UNIT: Readonly<Record<string, number>> = { memory: 1_024 ** 2 };

/**
 * Whether what a rule promises of its machines meets a constraint, both in the form of tmt's `hardware`. What the rule does not name is not met.
 * `key`: the last key of the path.
 */
export function meets(wanted: unknown, promised: unknown, key = ""): boolean {
  if (Array.isArray(wanted))
    return wanted.every((one, index) => {
      // Disks and networks are meant one by one; flags are a set.
      const isOneByOne = isObject(one) && Array.isArray(promised);
      return meets(one, isOneByOne ? promised[index] : promised, key);
    });
  if (isObject(wanted))
    return Object.entries(wanted).every(([name, part]) => {
      if (name === "and" && Array.isArray(part)) return part.every((one) => meets(one, promised, key));
      if (name === "or" && Array.isArray(part)) return part.some((one) => meets(one, promised, key));
      return isObject(promised) && name in promised && meets(part, promised[name], name);
    });
  const text = String(wanted).trim();
  const operator = Object.keys(OPERATORS).find((one) => text.startsWith(one)) ?? "";
  const value = text.slice(operator.length).trim();
  const test = (one: unknown) => holds(operator || "=", value, one, key);
  if (!Array.isArray(promised)) return test(promised);
  return operator.startsWith("!") ? promised.every(test) : promised.some(test);
}

function holds(operator: string, wanted: string, promised: unknown, key: string): boolean {
  if (promised === undefined || promised === null || isObject(promised)) return false;
  const [left, right] = [amount(String(promised), key), amount(wanted, key)];
  const test = OPERATORS[operator]!;
  return left === undefined || right === undefined ? test(String(promised), wanted) : test(left, right);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** From the start, as Python matches; a pattern that is none matches nothing. */
function matches(pattern: string, text: string): boolean {
  try {
    return new RegExp(`^(?:${pattern})`).test(text);
  } catch {
    return false;
  }
}

/** A number, in bytes where it has a unit or a usual one; undefined: it is a text. */
function amount(text: string, key: string): number | undefined {
  const [, digits, prefix = "", binary, unit] =
    /^(\d+(?:\.\d+)?)\s*(?:([KkMGTP]?)(i?)(B|byte|bytes))?$/.exec(text) ?? [];
  if (digits === undefined) return undefined;
  if (unit === undefined) return Number(digits) * (USUAL_UNIT[key] ?? 1);
  return (
    Number(digits) *
    (binary === "i" ? 1_024 : 1_000) ** ["", "K", "M", "G", "T", "P"].indexOf(prefix.toUpperCase())
  );
}
