import { readFileSync } from "node:fs";
import { Ajv, type ValidateFunction } from "ajv";

/** A schema of a discovery document, which is an older JSON Schema of Google's own. */
interface Schema {
  readonly type?: string;
  readonly format?: string;
  readonly $ref?: string;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly minimum?: string;
  readonly maximum?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
}

interface Parameter extends Schema {
  readonly location: "path" | "query";
  readonly required?: boolean;
}

interface Method {
  readonly httpMethod: string;
  readonly path: string;
  readonly parameters?: Readonly<Record<string, Parameter>>;
  readonly request?: { readonly $ref: string };
  readonly response?: { readonly $ref: string };
}

interface Document {
  readonly revision: string;
  readonly servicePath: string;
  readonly parameters: Readonly<Record<string, Parameter>>;
  readonly methods: Readonly<Record<string, Method>>;
  readonly schemas: Readonly<Record<string, Schema>>;
}

/** The part of Google's documents that `discovery.py` has taken out. */
const { source: _, ...DOCUMENTS } = JSON.parse(
  readFileSync(new URL("../discovery.schema.json", import.meta.url), "utf8"),
) as Readonly<Record<"compute", Document>> & { readonly source: string };

/** A request, as the documents name it. */
export interface Named {
  readonly api: "compute";
  /** `instances.insert` */
  readonly method: string;
  /** Of the path, decoded. */
  readonly path: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
}

interface Route {
  readonly api: Named["api"];
  readonly name: string;
  readonly verb: string;
  readonly pattern: RegExp;
}

/** Lengths and forms of the texts that JSON has in place of numbers and times. */
const FORMATS: Readonly<Record<string, RegExp>> = {
  int64: /^-?\d{1,19}$/,
  uint64: /^\d{1,20}$/,
  byte: /^[\w+/=-]*$/,
  "google-duration": /^-?\d+(\.\d+)?s$/,
  "date-time": /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/,
};

/** What Google's discovery documents say about requests and answers. */
export class Discovery {
  readonly #routes: readonly Route[];
  readonly #ajv = new Ajv({ strict: false, allErrors: true });
  readonly #checks = new Map<string, ValidateFunction>();

  constructor() {
    this.#routes = Object.entries(DOCUMENTS).flatMap(([api, { methods, servicePath }]) =>
      Object.entries(methods).map(([name, { httpMethod: verb, path }]) => {
        const named = path.replace(/\{\+?(\w+)\}/g, (_, parameter: string) => `(?<${parameter}>[^/]+)`);
        return { api: api as Named["api"], name, verb, pattern: new RegExp(`^/${servicePath}${named}$`) };
      }),
    );
    for (const [api, { schemas }] of Object.entries(DOCUMENTS)) {
      const definitions = Object.fromEntries(
        Object.entries(schemas).map(([name, schema]) => [name, jsonSchema(schema, api)]),
      );
      this.#ajv.addSchema({ $id: api, definitions });
    }
    for (const [format, form] of Object.entries(FORMATS)) this.#ajv.addFormat(format, form);
  }

  /** The method of a request; undefined: the documents, or the double, have none. */
  named(verb: string, url: URL): Named | undefined {
    for (const { api, name, verb: wanted, pattern } of this.#routes) {
      const found = verb === wanted ? pattern.exec(url.pathname) : null;
      if (found === null) continue;
      const path = Object.entries(found.groups ?? {}).map(([key, value]) => [key, decodeURIComponent(value)]);
      return { api, method: name, path: Object.fromEntries(path), query: url.searchParams };
    }
    return undefined;
  }

  /** What is wrong with a request. */
  inRequest({ api, method, path, query }: Named, body: unknown): readonly string[] {
    const { parameters, methods } = DOCUMENTS[api];
    const { parameters: own = {}, request } = methods[method]!;
    const wrong: string[] = [];
    for (const [name, value] of [...Object.entries(path), ...query]) {
      const parameter = own[name] ?? parameters[name];
      if (parameter === undefined) wrong.push(`${method} has no parameter ${name}`);
      else wrong.push(...problemsOf(name, value, parameter));
    }
    if (request === undefined) {
      if (body !== undefined) wrong.push(`${method} takes no body`);
    } else if (body !== undefined) wrong.push(...this.#judge(api, request.$ref, body));
    return wrong;
  }

  /** What is wrong with a successful answer. */
  inAnswer({ api, method }: Named, body: unknown): readonly string[] {
    const { response } = DOCUMENTS[api].methods[method]!;
    if (response === undefined) return body === undefined ? [] : [`${method} answers without a body`];
    return this.#judge(api, response.$ref, body);
  }

  #judge(api: string, name: string, value: unknown): readonly string[] {
    const ref = `${api}#/definitions/${name}`;
    const check = this.#checks.get(ref) ?? this.#ajv.compile({ $ref: ref });
    this.#checks.set(ref, check);
    if (check(value)) return [];
    return (check.errors ?? []).map(
      ({ instancePath, message, params }) => `${name}${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  }
}

function problemsOf(
  name: string,
  value: string,
  { type, pattern, minimum, maximum }: Parameter,
): readonly string[] {
  const wrong = (why: string) => [`${name} is ${value}, ${why}`];
  if (pattern !== undefined && !new RegExp(`^(?:${pattern})$`).test(value)) return wrong(`not ${pattern}`);
  if (type === "boolean" && !/^(true|false)$/.test(value)) return wrong("not a boolean");
  if (type !== "integer") return [];
  const number = Number(value);
  if (!Number.isInteger(number)) return wrong("not an integer");
  return number < Number(minimum ?? number) || number > Number(maximum ?? number)
    ? wrong("out of range")
    : [];
}

/** The same in a JSON Schema of today. Google refuses names that a message does not have. */
function jsonSchema(schema: Schema, api: string): object {
  const { type, format, $ref, enum: words, properties, items, additionalProperties } = schema;
  if ($ref !== undefined) return { $ref: `${api}#/definitions/${$ref}` };
  if (type === "any") return {};
  if (type === "object")
    return {
      type,
      properties: Object.fromEntries(
        Object.entries(properties ?? {}).map(([name, one]) => [name, jsonSchema(one, api)]),
      ),
      additionalProperties:
        additionalProperties === undefined ? false : jsonSchema(additionalProperties, api),
    };
  if (type === "array") return { type, items: jsonSchema(items ?? { type: "any" }, api) };
  return { type, ...(words && { enum: words }), ...(FORMATS[format ?? ""] && { format }) };
}
