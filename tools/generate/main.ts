import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { openApiDocument } from "@nodeyard/api";
import { errorsPage } from "../structure/errors-page.ts";
import { readWorkspace } from "../structure/workspace.ts";
import { awsPolicy } from "./aws-policy.ts";
import { cliPage } from "./cli.ts";
import { clientTypes } from "./client.ts";
import { configurationPage, configurationSchema } from "./configuration.ts";
import { connectPage } from "./connect.ts";
import { exitCodesPage } from "./exit-codes.ts";
import { logEventsPage } from "./log-events.ts";
import { metricsPage } from "./metrics.ts";
import { secureFilePage } from "./reference.ts";
import { statesPage } from "./states.ts";

const root = resolve(import.meta.dirname, "../..");

/** Files that are made from code, by path below the repository's root. */
const generated: Readonly<Record<string, () => string | Promise<string>>> = {
  "docs/reference/aws-policy.json": awsPolicy,
  "docs/reference/cli.md": cliPage,
  "docs/reference/configuration.md": configurationPage,
  "docs/reference/connect.md": connectPage,
  "docs/reference/nodepool.schema.json": configurationSchema,
  "docs/reference/errors.md": () => errorsPage(readWorkspace(root)),
  "docs/reference/log-events.md": logEventsPage,
  "docs/reference/exit-codes.md": exitCodesPage,
  "docs/reference/metrics.md": metricsPage,
  "docs/reference/secure-file.md": secureFilePage,
  "docs/reference/states.md": statesPage,
  "docs/reference/openapi.json": async () => `${JSON.stringify(await openApiDocument(), null, 2)}\n`,
  "packages/faces/client/src/generated/operations.ts": clientTypes,
};

const check = process.argv.includes("--check");
const stale: string[] = [];

for (const [path, make] of Object.entries(generated)) {
  const file = resolve(root, path);
  const text = await make();
  if (text === read(file)) continue;
  stale.push(path);
  if (check) continue;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

if (!check) console.log(stale.length === 0 ? "everything is up to date" : `wrote ${stale.join(", ")}`);
else if (stale.length > 0) {
  console.error(`out of date: ${stale.join(", ")}; run npm run generate`);
  process.exitCode = 1;
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
