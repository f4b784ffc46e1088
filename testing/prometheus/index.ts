import { spawnSync } from "node:child_process";

/** Parses a page with the parser of Prometheus' own client for Python: a server accepts what it accepts. */
const SCRIPT = `
import json, sys
from prometheus_client.parser import text_string_to_metric_families
families = [{"name": f.name, "type": f.type, "help": f.documentation,
             "samples": [{"name": s.name, "labels": s.labels, "value": s.value} for s in f.samples]}
            for f in text_string_to_metric_families(sys.stdin.read())]
json.dump(families, sys.stdout)
`;

import { requireTools, skip } from "../skipped.ts";

export interface Family {
  /** The name of a counter has no `_total` here. */
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: readonly {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly value: number;
  }[];
}

/** Debian's Python, because another python3 may come first on the PATH. */
const PYTHONS = ["python3", "/usr/bin/python3"];

let found: string | undefined;

/** Why the parser is not available, or undefined. */
export function requirePrometheusParser(): string | undefined {
  found ??= PYTHONS.find((python) => spawnSync(python, ["-c", "import prometheus_client"]).status === 0);
  if (found !== undefined) return undefined;
  return skip(
    "Prometheus tests need the parser of its Python client",
    "/usr/lib/python3/dist-packages/prometheus_client",
  );
}

/** The metric families of a page. Throws with the parser's message if the page is not valid. */
export function parsePage(text: string): readonly Family[] {
  const { status, stdout, stderr } = spawnSync(found!, ["-c", SCRIPT], {
    input: text,
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw new Error(`Prometheus' parser: ${stderr.trim().split("\n").at(-1)}`);
  return JSON.parse(stdout.replaceAll(/\bNaN\b|-?\bInfinity\b/g, "null")) as readonly Family[];
}

/** For `test.skipIf(requirePromtool())`: why promtool is not available, or undefined. */
export const requirePromtool = () => requireTools("tests of alerts", "promtool");
