/**
 * `npm run test:release`: makes a release as docs/how-to/publish-a-release.md says, and installs each of its parts from its folder: packages of npm,
 * Debian packages (as `test:debian`), images of containers (as `test:oci`), the chart. `-- FOLDER` takes a release that was made before.
 * Needs what those need.
 */
import { execFileSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { scriptOf } from "../../tools/build/page.ts";
import { verify } from "../../tools/build/verify.ts";
import { CHART, requireHelm, runHelm } from "../kubernetes/helm.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
const PAGES = join(ROOT, "docs/how-to");
/** A chart without a configuration is refused. */
const VALUES = { config: "zookeeper-servers: [{host: zk}]" };

const given = process.argv[2];
const release = given === undefined ? mkdtempSync(join(tmpdir(), "nodeyard-release-")) : resolve(given);
try {
  const run = (...words: readonly string[]) =>
    execFileSync(words[0]!, words.slice(1), { cwd: ROOT, stdio: ["ignore", "inherit", "inherit"] });
  if (given === undefined) {
    const made = scriptOf(join(PAGES, "publish-a-release.md"), "release");
    run("bash", "-euo", "pipefail", "-c", made.replace("--release release", `--release ${release}`));
  }
  const checked = scriptOf(join(PAGES, "publish-a-release.md"), "check");
  run("bash", "-euo", "pipefail", "-c", checked.replace("cd release", `cd ${release}`));

  const packages = globSync(join(release, "npm/*.tgz"));
  packages.forEach(demandProvenance);
  for (const what of verify(packages, join(PAGES, "install.md")))
    console.log(`works when installed: ${what}`);
  demandChart();
  run(process.execPath, join(ROOT, "testing/debian/main.ts"), join(release, "debian"));
  run(process.execPath, join(ROOT, "testing/oci/main.ts"), join(release, "images"));
  console.log(`${release} is a release: everything in it was installed`);
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  if (given === undefined) rmSync(release, { recursive: true, force: true });
}

/** The only subject of a tarball's statement is that tarball, and its source a commit of this repository. */
function demandProvenance(tarball: string): void {
  const { subject, predicate } = JSON.parse(readFileSync(`${tarball}.intoto.json`, "utf8"));
  const sum = execFileSync("sha512sum", [tarball], { encoding: "utf8" }).split(" ")[0];
  const source = predicate.buildDefinition.resolvedDependencies[0].digest.gitCommit;
  execFileSync("git", ["cat-file", "-e", `${source}^{commit}`], { cwd: ROOT });
  if (subject.length !== 1 || subject[0].digest.sha512 !== sum)
    throw new Error(`${tarball}.intoto.json is of something else: ${JSON.stringify(subject)}`);
}

/** Helm takes the chart's archive, and makes of it what it makes of the folder, which other tests install. */
function demandChart(): void {
  const why = requireHelm();
  if (why !== undefined) return;
  const [archive = "none"] = globSync(join(release, "chart/*.tgz"));
  runHelm(["lint", "--strict"], VALUES, archive);
  const [packed, folder] = [archive, CHART].map((chart) => runHelm(["template", "yard"], VALUES, chart));
  if (packed === "" || packed !== folder)
    throw new Error(`${basename(archive)} renders something else than its folder`);
  console.log(`helm installs ${basename(archive)}`);
}
