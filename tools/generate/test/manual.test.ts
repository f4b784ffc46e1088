import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemMachine } from "@nodeyard/telemetry/machine";
import { describeProgram } from "nodeyard";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requireTools } from "../../../testing/skipped.ts";
import { manualPages, type Pages, sliverHostPages } from "../manual.ts";

let folder: string;
let pages: Pages;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "nodeyard-manual-"));
  pages = { ...(await manualPages()), ...sliverHostPages() };
  for (const [name, page] of Object.entries(pages)) writeFileSync(join(folder, name), page);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const env = { ...process.env, LC_ALL: "C.UTF-8", MANWIDTH: "100", MANROFFSEQ: "" };
/** What a reader sees. */
function read(name: string): string {
  const said = execFileSync("man", ["-l", join(folder, name)], { env, encoding: "utf8" });
  return said.replaceAll(/\s+/g, " ");
}

test("every command has a page, and every program of a sliver host", async () => {
  const { commands: described } = await describeProgram(systemMachine());
  const commands = described.map(({ path }) => `nodeyard-${path[0]}`);
  const names = Object.keys(pages).map((file) => file.replace(/\.\d$/, ""));
  expect(names.sort()).toEqual([...commands, "nodeyard", "nodepool.yaml", "sliver-enrol", "sliverd"].sort());
});

describe.skipIf(requireTools("tests of manual pages", "man"))("man", () => {
  test("formats the pages without a warning", () => {
    const words = ["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"];
    const files = Object.keys(pages).map((name) => join(folder, name));
    const { status, stderr } = spawnSync("man", [...words, ...files], { env, encoding: "utf8" });
    expect([status, stderr]).toEqual([0, ""]);
  });

  test("shows a command's arguments, options and exit codes", () => {
    const page = read("nodeyard-request.1");
    expect(page).toContain("SYNOPSIS nodeyard request [options] <label...>");
    expect(page).toContain(
      "--timeout <duration> with --wait: wait no longer for the nodes, exit code 124; default: the lease",
    );
    expect(read("nodeyard.1")).toContain("124 --timeout passed before what was waited for");
  });

  test("shows commands beneath a command, characters of roff, and keys of the configuration", () => {
    expect(read("nodeyard-sliverd.1")).toContain("nodeyard sliverd keys rotate");
    expect(read("nodeyard-launcher.8")).toContain("`Authorization: Bearer TOKEN`");
    expect(read("nodepool.yaml.5")).toContain(
      "zookeeper-timeout (float, default: 10) Session timeout. Write: a number above 0. Unit: s.",
    );
    expect(read("sliverd.8")).toContain("sliverd --config FILE run the sliver manager");
  });
});
