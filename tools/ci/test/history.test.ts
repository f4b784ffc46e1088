import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { recordPasses, situationOf } from "../history.ts";

let root: string;
const git = (...words: string[]) =>
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.org", ...words], {
    cwd: root,
    encoding: "utf8",
  }).trim();
const write = (path: string, text: string) => writeFileSync(join(root, path), text);
function commit(): string {
  git("add", "--all");
  git("commit", "--quiet", "--allow-empty", "--message", "some");
  return git("rev-parse", "HEAD");
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "nodeyard-history-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  git("init", "--quiet");
  mkdirSync(join(root, ".ci"));
  write("old", "a long text that git takes for the same file\n".repeat(9));
  commit();
});

test("without a run, or with one of another history, everything counts as changed", () => {
  const { commits, changedSince } = situationOf(root, undefined);
  expect([commits, changedSince("kills")]).toEqual([1, ".ci/last-whole has no run of it"]);
  write(".ci/last-whole", `kills ${"1".repeat(40)}\n`);
  commit();
  expect(situationOf(root, undefined).changedSince("kills")).toMatch(/this clone lacks 1111/);
});

test("a suite is compared with the commit that it passed last: what differs is moved, committed or not", () => {
  const first = git("rev-parse", "HEAD");
  expect(recordPasses(root, ["kills", "guests"])).toBe(true);
  expect(readFileSync(join(root, ".ci/last-whole"), "utf8")).toBe(`guests ${first}\nkills ${first}\n`);
  renameSync(join(root, "old"), join(root, "moved"));
  const second = commit();
  expect(recordPasses(root, ["kills"])).toBe(true);
  write("fresh", "");
  const { changedSince } = situationOf(root, undefined);
  expect(changedSince("kills")).toEqual({ since: second.slice(0, 8), paths: [".ci/last-whole", "fresh"] });
  expect(changedSince("guests")).toEqual({
    since: first.slice(0, 8),
    paths: [".ci/last-whole", "moved", "old", "fresh"],
  });
});

test("a run of a checkout that differs from its commit is not recorded", () => {
  write("fresh", "");
  expect(recordPasses(root, ["kills"])).toBe(false);
});

test("a commit to compare with is used instead, and a wrong one is refused by its name", () => {
  const first = git("rev-parse", "HEAD");
  write("second", "");
  commit();
  expect(situationOf(root, "HEAD~1").changedSince("kills")).toEqual({
    since: first.slice(0, 8),
    paths: ["second"],
  });
  expect(() => situationOf(root, "nowhere")).toThrow("--since nowhere: this clone has no such commit");
});
