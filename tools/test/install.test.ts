import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));

/** A workspace with our settings of npm, in which one package wants a Node that nobody has. */
function workspace(): string {
  const root = mkdtempSync(join(tmpdir(), "nodeyard-install-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  cpSync(join(REPOSITORY, ".npmrc"), join(root, ".npmrc"));
  const top = { name: "top", version: "1.0.0", workspaces: ["packages/*"] };
  const inner = { name: "inner", version: "1.0.0", engines: { node: "<1" } };
  mkdirSync(join(root, "packages/inner"), { recursive: true });
  writeFileSync(join(root, "package.json"), JSON.stringify(top));
  writeFileSync(join(root, "packages/inner/package.json"), JSON.stringify(inner));
  const packages = {
    "": top,
    "node_modules/inner": { resolved: "packages/inner", link: true },
    "packages/inner": inner,
  };
  writeFileSync(
    join(root, "package-lock.json"),
    JSON.stringify({ name: "top", version: "1.0.0", lockfileVersion: 3, packages }),
  );
  return root;
}

it("npm ci says nothing of the Node that runs npm, since another one runs everything", () => {
  const cwd = workspace();
  // `npm test` gives its own settings to what it starts.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_config_/i.test(name)));
  const ci = (...args: readonly string[]) =>
    spawnSync("npm", ["ci", ...args], { cwd, env, encoding: "utf8" });
  expect(ci("--loglevel=warn").stderr).toContain("EBADENGINE");
  expect(ci()).toMatchObject({ status: 0, stderr: "" });
});
