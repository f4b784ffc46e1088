import { XmlRpcError } from "../../errors.ts";

/** A `double`. A plain number is written as `int`. */
export class XmlRpcDouble {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

/** A `dateTime.iso8601` as received. It has no time zone. */
export class XmlRpcTime {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** `int` is number, `base64` is Uint8Array. `nil`, the only supported extension, is null. */
export type XmlRpcValue =
  | number
  | boolean
  | string
  | null
  | XmlRpcDouble
  | XmlRpcTime
  | Uint8Array
  | readonly XmlRpcValue[]
  | { readonly [name: string]: XmlRpcValue };

const HEAD = '<?xml version="1.0"?>\n';

/** Throws XmlRpcError for values that XML-RPC cannot represent. */
export function writeResponse(value: XmlRpcValue): string {
  return `${HEAD}<methodResponse><params><param>${valueXml(value)}</param></params></methodResponse>\n`;
}

/** A response that is a fault. */
export function writeFault(code: number, text: string): string {
  const fault = valueXml({ faultCode: code, faultString: text });
  return `${HEAD}<methodResponse><fault>${fault}</fault></methodResponse>\n`;
}

/** Throws XmlRpcError. */
export function writeCall(method: string, params: readonly XmlRpcValue[]): string {
  const list = params.map((one) => `<param>${valueXml(one)}</param>`).join("");
  return `${HEAD}<methodCall><methodName>${escaped(method)}</methodName><params>${list}</params></methodCall>\n`;
}

function valueXml(value: XmlRpcValue): string {
  return `<value>${typedXml(value)}</value>`;
}

function typedXml(value: XmlRpcValue): string {
  if (typeof value === "string") return `<string>${escaped(value)}</string>`;
  if (typeof value === "boolean") return `<boolean>${value ? 1 : 0}</boolean>`;
  if (typeof value === "number") return `<int>${int32(value)}</int>`;
  if (value === null) return "<nil/>";
  if (value instanceof XmlRpcDouble) return `<double>${double(value.value)}</double>`;
  if (value instanceof XmlRpcTime) return `<dateTime.iso8601>${escaped(value.text)}</dateTime.iso8601>`;
  if (value instanceof Uint8Array) return `<base64>${Buffer.from(value).toString("base64")}</base64>`;
  if (Array.isArray(value)) return `<array><data>${value.map(valueXml).join("")}</data></array>`;
  const members = Object.entries(value as Record<string, XmlRpcValue>).map(
    ([name, one]) => `<member><name>${escaped(name)}</name>${valueXml(one)}</member>`,
  );
  return `<struct>${members.join("")}</struct>`;
}

function int32(value: number): number {
  if (!Number.isInteger(value) || value < -2_147_483_648 || value > 2_147_483_647)
    throw new XmlRpcError(`${value} is not an integer of 32 bits`);
  return value;
}

function double(value: number): string {
  if (!Number.isFinite(value)) throw new XmlRpcError(`${value} is not a double of XML-RPC`);
  return String(value);
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;" };

/** Escapes text. XML 1.0 cannot represent most control characters and lone surrogates, so they become U+FFFD. */
function escaped(text: string): string {
  return (
    text
      .toWellFormed()
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
      .replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, "\ufffd")
      .replace(/[&<>\r]/g, (one) => ENTITIES[one]!)
  );
}
