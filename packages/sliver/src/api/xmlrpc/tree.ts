import sax from "sax";
import { XmlRpcError } from "./errors.ts";

export interface Element {
  readonly name: string;
  readonly children: Element[];
  text: string;
}

/** Deepest nesting of elements. A value within a value takes four at most, so 32 levels of values fit. */
const MAX_DEPTH = 140;

/** Longest text, characters. */
export const MAX_TEXT = 1024 * 1024;

/** Only the five entities of XML, where the default knows those of HTML. */
const OPTIONS = { trim: false, normalize: false, strictEntities: true };

/** Elements and their texts; whatever else XML has is refused. Throws XmlRpcError. */
export function parseTree(text: string, longest = MAX_TEXT): Element {
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
    if (open.length >= MAX_DEPTH) throw new XmlRpcError("nested too deep");
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
