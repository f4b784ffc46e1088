/** Why a template cannot be filled in, as the end of a sentence about it. */
export class TemplateProblem extends Error {}

export interface Field {
  readonly path: readonly { readonly name: string; readonly index: boolean }[];
  /** "s", "r", "a", or "": none. */
  readonly conversion: string;
  readonly spec: string;
}

/** Text as it is, or a field to fill in. */
export type Part = string | Field;

const FIELD = /^([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*|\[[^\][]+\])*)(?:!([sra]))?(?::([^{}]*))?$/su;

export function parseTemplate(template: string): readonly Part[] {
  const parts: Part[] = [];
  for (let at = 0; at < template.length; ) {
    const here = template[at]!;
    if (here !== "{" && here !== "}") {
      const end = template.slice(at).search(/[{}]/);
      parts.push(end < 0 ? template.slice(at) : template.slice(at, at + end));
      if (end < 0) break;
      at += end;
    } else if (template[at + 1] === here) {
      parts.push(here);
      at += 2;
    } else if (here === "}") {
      throw new TemplateProblem("has a single }; write }}");
    } else {
      const end = template.indexOf("}", at);
      if (end < 0) throw new TemplateProblem("has a { that nothing closes; write {{");
      parts.push(parseField(template.slice(at + 1, end)));
      at = end + 1;
    }
  }
  return parts;
}

function parseField(text: string): Field {
  const match = FIELD.exec(text);
  if (match === null) throw new TemplateProblem(`has the field {${text}}, which is not understood`);
  const [, first, rest = "", conversion = "", spec = ""] = match;
  const steps = rest.match(/\.[A-Za-z_]\w*|\[[^\][]+\]/g) ?? [];
  const path = steps.map((step) =>
    step.startsWith("[") ? { name: step.slice(1, -1), index: true } : { name: step.slice(1), index: false },
  );
  return { path: [{ name: first!, index: false }, ...path], conversion, spec };
}
