import { messageOf } from "@nodeyard/runtime";
import { parse, type ScalarTag } from "yaml";
import { CloudConfigError } from "../faults.ts";
import { YamlDate, YamlFloat } from "./vocabulary.ts";
import { plainScalar, taggedScalar } from "./yaml-scalars.ts";

const PREFIX = "tag:yaml.org,2002:";

/** One tag for all plain scalars: their types are those of YAML 1.1. */
const plain: ScalarTag = {
  tag: `${PREFIX}plain`,
  default: true,
  test: /^/,
  resolve: (text) => bare(plainScalar(text)),
};

const explicit = ["int", "float", "bool", "null", "timestamp"].map(
  (name): ScalarTag => ({ tag: PREFIX + name, resolve: (text) => bare(taggedScalar(PREFIX + name, text)) }),
);

/**
 * The value of a file of a cloud's own tools (clouds.yaml, kubeconfig), with the types that these give to scalars: they read YAML 1.1 as
 * PyYAML does, in which `12e4` is text, `no` is false and 010 is 8. Dates are text. Throws an Error with the place.
 */
export function parseCloudFile(text: string): unknown {
  return parse(text, {
    version: "1.1",
    schema: "failsafe",
    resolveKnownTags: false,
    merge: true,
    customTags: [plain, ...explicit],
  });
}

function bare(value: unknown): unknown {
  if (value instanceof YamlFloat) return value.value;
  return value instanceof YamlDate ? value.text : value;
}

/** The text of a file; undefined: there is none. Throws when it cannot be read. */
export type ReadFile = (path: string) => string | undefined;

/** The text of a file of credentials; undefined: there is none. Throws CloudConfigError with the path when it cannot be read. */
export function textIn(path: string, read: ReadFile): string | undefined {
  try {
    return read(path);
  } catch (error) {
    throw new CloudConfigError(`${path} cannot be read: ${messageOf(error)}`, { cause: error });
  }
}

/** The same of a file that must be there. */
export function neededText(path: string, read: ReadFile): string {
  const text = textIn(path, read);
  if (text === undefined) throw new CloudConfigError(`there is no file ${path}; correct the path`);
  return text;
}
