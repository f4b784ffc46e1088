import sax from "sax";
import { XmlRpcError } from "../../errors.ts";
import { XmlRpcDouble, XmlRpcTime, type XmlRpcValue } from "./write.ts";

/** An XML element with its text; attributes are refused. */
export interface Element {
  /** As it is written; namespaces are not understood. */
  readonly name: string;
  readonly children: Element[];
  /** All text directly within it, one piece after the other. */
  text: string;
}

/** Deepest nesting of elements. Each level of values takes at most four elements, so 32 levels fit. */
const MAX_ELEMENTS = 140;

/** Longest text in characters. */
export const MAX_TEXT = 1024 * 1024;

/** Accept only the five entities of XML; sax's default also knows those of HTML. */
const OPTIONS = { trim: false, normalize: false, strictEntities: true };

/** Parses elements and their texts; all other parts of XML are refused. Throws XmlRpcError. */
function parseTree(text: string, longest = MAX_TEXT): Element {
  if (text.length > longest) throw new XmlRpcError(`more than ${longest} characters`);
  const xml = sax.parser(true, OPTIONS);
  const open: Element[] = [];
  let root: Element | undefined;
  xml.onerror = (error) => {
    throw new XmlRpcError(`no well-formed XML: ${error.message.replaceAll("\n", ", ")}`);
  };
  const refuse = (what: string) => () => {
    throw new XmlRpcError(`${what} is not allowed`);
  };
  xml.ondoctype = refuse("a document type");
  xml.onattribute = refuse("an attribute");
  xml.onprocessinginstruction = ({ name }) => {
    if (name.toLowerCase() !== "xml") refuse("a processing instruction")();
  };
  xml.onopentag = ({ name }) => {
    const element: Element = { name, children: [], text: "" };
    if (open.length >= MAX_ELEMENTS) throw new XmlRpcError("nested too deep");
    const parent = open.at(-1);
    if (parent === undefined && root !== undefined) throw new XmlRpcError("more than one root");
    if (parent === undefined) root = element;
    else parent.children.push(element);
    open.push(element);
  };
  xml.onclosetag = () => void open.pop();
  const add = (more: string) => {
    const last = open.at(-1);
    if (last !== undefined) last.text += more;
    else if (more.trim() !== "") throw new XmlRpcError("text outside of the root");
  };
  xml.ontext = add;
  xml.oncdata = add;
  xml.write(text).close();
  if (root === undefined || open.length > 0) throw new XmlRpcError("the text ends too early");
  return root;
}

/** Deepest nesting of arrays and structs. */
export const MAX_DEPTH = 32;

/** An XML-RPC call (http://xmlrpc.com/spec.md). */
export interface MethodCall {
  readonly method: string;
  readonly params: readonly XmlRpcValue[];
}

/** Reads a call. Throws XmlRpcError for everything that the specification does not have, except `nil`, which many libraries know. */
export function parseCall(text: string): MethodCall {
  const root = parseTree(text);
  if (root.name !== "methodCall") throw new XmlRpcError(`${root.name} is not a methodCall`);
  const [name, params, ...more] = elements(root);
  if (name?.name !== "methodName" || more.length > 0) throw new XmlRpcError("methodCall without methodName");
  const method = textOf(name).trim();
  if (!/^[A-Za-z0-9_.:/]{1,128}$/.test(method)) throw new XmlRpcError("the methodName is not a name");
  return { method, params: params === undefined ? [] : paramsOf(params) };
}

/** The value of a response, or its fault as `{faultCode, faultString}`. `longest` is the most characters. Throws XmlRpcError. */
export function parseResponse(
  text: string,
  longest?: number,
): { value: XmlRpcValue } | { fault: XmlRpcValue } {
  const root = parseTree(text, longest);
  if (root.name !== "methodResponse") throw new XmlRpcError(`${root.name} is not a methodResponse`);
  const body = only(root);
  if (body.name === "fault") return { fault: readValue(only(body), 0) };
  const values = paramsOf(body);
  if (values.length !== 1) throw new XmlRpcError("a response has one value");
  return { value: values[0]! };
}

/** The values of a `params`, which may be empty. */
function paramsOf(params: Element): XmlRpcValue[] {
  if (params.name !== "params") throw new XmlRpcError(`${params.name} where params belong`);
  return elements(params).map((param) => {
    if (param.name !== "param") throw new XmlRpcError(`${param.name} where a param belongs`);
    return readValue(only(param), 0);
  });
}

/** `depth` counts the arrays and structs around it. */
function readValue(value: Element, depth: number): XmlRpcValue {
  if (value.name !== "value") throw new XmlRpcError(`${value.name} where a value belongs`);
  if (depth > MAX_DEPTH) throw new XmlRpcError("values are nested too deep");
  // Without a type element the value is a string, white space included (XML-RPC specification).
  if (value.children.length === 0) return value.text;
  const typed = only(value);
  switch (typed.name) {
    case "array":
      return arrayOf(typed, depth);
    case "struct":
      return structOf(typed, depth);
    default:
      return scalarOf(typed.name, textOf(typed));
  }
}

/** Parsers of the scalar types; undefined for text that is not of the type. */
const SCALARS: Readonly<Record<string, (text: string) => XmlRpcValue | undefined>> = {
  string: (text) => text,
  int: intOf,
  i4: intOf,
  boolean: (text) => (/^[01]$/.test(text.trim()) ? text.trim() === "1" : undefined),
  double: (text) =>
    /^\s*[+-]?\d+(\.\d*)?([eE][+-]?\d+)?\s*$/.test(text) ? new XmlRpcDouble(Number(text)) : undefined,
  "dateTime.iso8601": (text) =>
    /^\d{8}T\d\d:\d\d:\d\d$/.test(text.trim()) ? new XmlRpcTime(text.trim()) : undefined,
  base64: (text) => bytesOf(text.replace(/\s+/g, "")),
  nil: (text) => (text.trim() === "" ? null : undefined),
};

/** Throws XmlRpcError for another type, and for text that is not of it. */
function scalarOf(type: string, text: string): XmlRpcValue {
  const read = Object.hasOwn(SCALARS, type) ? SCALARS[type] : undefined;
  if (read === undefined) throw new XmlRpcError(`${type} is not a type of XML-RPC`);
  const value = read(text);
  if (value === undefined)
    throw new XmlRpcError(`${JSON.stringify(text.slice(0, 80))} is not of type ${type}`);
  return value;
}

/** A 32-bit integer; -0 becomes 0. */
function intOf(text: string): number | undefined {
  const value = /^\s*[+-]?\d{1,10}\s*$/.test(text) ? Number(text) : Number.NaN;
  return value >= -2_147_483_648 && value <= 2_147_483_647 ? value || 0 : undefined;
}

/** Base64 with its padding; undefined for anything else, which `Buffer.from` would skip without a word. */
function bytesOf(text: string): Uint8Array | undefined {
  const whole = /^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text);
  return whole ? Buffer.from(text, "base64") : undefined;
}

/** `<array><data>` with values of any types. */
function arrayOf(array: Element, depth: number): XmlRpcValue[] {
  const data = only(array);
  if (data.name !== "data") throw new XmlRpcError("array without data");
  return elements(data).map((one) => readValue(one, depth + 1));
}

/** Order does not matter. A name that occurs twice is refused: the sender and this side could take different values. */
function structOf(struct: Element, depth: number): { [name: string]: XmlRpcValue } {
  const members = new Map<string, XmlRpcValue>();
  for (const member of elements(struct)) {
    const [name, value, ...more] = elements(member);
    if (member.name !== "member" || name?.name !== "name" || value === undefined || more.length > 0)
      throw new XmlRpcError("a member has one name and one value");
    const key = textOf(name);
    if (members.has(key)) throw new XmlRpcError(`member ${JSON.stringify(key)} is there twice`);
    members.set(key, readValue(value, depth + 1));
  }
  // fromEntries defines own properties, also for the name `__proto__`.
  return Object.fromEntries(members);
}

/** The child elements; only white space may be between them. */
function elements(element: Element): readonly Element[] {
  if (element.text.trim() !== "") throw new XmlRpcError(`text within ${element.name}`);
  return element.children;
}

/** The one child element. Throws XmlRpcError when there is none or a second one. */
function only(element: Element): Element {
  const [child, ...more] = elements(element);
  if (child === undefined || more.length > 0) throw new XmlRpcError(`${element.name} holds one element`);
  return child;
}

/** The text of an element without children. */
function textOf(element: Element): string {
  if (element.children.length > 0) throw new XmlRpcError(`elements within ${element.name}`);
  return element.text;
}
