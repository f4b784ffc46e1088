import { YamlDate, YamlFloat } from "./vocabulary.ts";

/** Types of plain scalars in YAML 1.1 as the old readers see them (docs/contract/config.md, "YAML 1.1"). */
const forms = {
  bool: /^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$/,
  null: /^(?:~|null|Null|NULL|)$/,
  int: /^[-+]?(?:0b[01_]+|0x[\da-fA-F_]+|0[0-7_]*|[1-9][\d_]*|[1-9][\d_]*(?::[0-5]?\d)+)$/,
  float:
    /^(?:[-+]?\d[\d_]*\.[\d_]*(?:[eE][-+]\d+)?|\.\d[\d_]*(?:[eE][-+]\d+)?|[-+]?\d[\d_]*(?::[0-5]?\d)+\.[\d_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/,
  date: /^(?:\d{4}-\d\d-\d\d|\d{4}-\d\d?-\d\d?(?:[Tt]|[ \t]+)\d\d?:\d\d:\d\d(?:\.\d*)?(?:[ \t]*(?:Z|[-+]\d\d?(?::\d\d)?))?)$/,
} as const;

const TAG = "tag:yaml.org,2002:";

/** What makes a scalar unreadable, as a sentence. Its catcher knows the place. */
export class ScalarError extends Error {}

/** The value of an unquoted scalar without a tag. */
export function plainScalar(text: string): unknown {
  if (forms.null.test(text)) return null;
  if (forms.bool.test(text)) return isYes(text);
  if (forms.int.test(text)) return toInteger(text);
  if (forms.float.test(text)) return new YamlFloat(toFloat(text));
  if (/^\d{4}-/.test(text) && forms.date.test(text)) return new YamlDate(text);
  if (text === "=" || text === "<<")
    throw new ScalarError(`an unquoted ${text} is not a value; put quotes around it`);
  return text;
}

/** The value of a scalar with an explicit tag; tags outside YAML's own set are refused. */
export function taggedScalar(tag: string, text: string): unknown {
  switch (tag.startsWith(TAG) ? tag.slice(TAG.length) : tag) {
    case "!":
    case "str":
      return text;
    case "int":
      if (forms.int.test(text)) return toInteger(text);
      break;
    case "float":
      if (forms.int.test(text)) return new YamlFloat(toInteger(text));
      if (forms.float.test(text)) return new YamlFloat(toFloat(text));
      break;
    case "bool":
      if (forms.bool.test(text)) return isYes(text);
      break;
    case "null":
      return null;
    case "timestamp":
      if (forms.date.test(text)) return new YamlDate(text);
      break;
    default:
      throw new ScalarError(`tag ${tag} is not supported; only YAML's own types are`);
  }
  throw new ScalarError(`${text} does not fit its tag ${tag}`);
}

function isYes(text: string): boolean {
  return ["yes", "true", "on"].includes(text.toLowerCase());
}

/** YAML 1.1: `0o` is text, a leading 0 is octal, and 1:30 is 90 (https://yaml.org/type/int.html). Loses precision above 2^53, which is noted. */
function toInteger(text: string): number {
  const [sign, digits] = unsigned(text);
  const isOctal = digits.length > 1 && /^\d+$/.test(digits) && digits.startsWith("0");
  let value = Number(digits);
  if (digits.includes(":")) value = base60(digits);
  else if (isOctal) value = Number.parseInt(digits, 8);
  if (Number.isNaN(value)) throw new ScalarError(`${text} is not a number`);
  return sign * value;
}

function toFloat(text: string): number {
  const [sign, digits] = unsigned(text);
  const word = digits.toLowerCase();
  if (word === ".inf") return sign * Number.POSITIVE_INFINITY;
  if (word === ".nan") return Number.NaN;
  return sign * (digits.includes(":") ? base60(digits) : Number(digits));
}

function unsigned(text: string): readonly [number, string] {
  const sign = text.startsWith("-") ? -1 : 1;
  return [sign, text.replace(/^[-+]/, "").replaceAll("_", "")];
}

/** Base 60, as in 1:30:00 (https://yaml.org/type/int.html). */
function base60(digits: string): number {
  return digits.split(":").reduce((sum, part) => sum * 60 + Number(part), 0);
}
