import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemMachine } from "@nodeyard/telemetry/machine";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { main } from "../src/index.ts";
import { type Ended, fakeConfig, Site } from "./nodeyard.ts";

let site: Site;
beforeAll(() => {
  site = new Site(fakeConfig());
});
afterAll(() => site.close());

/** Runs a command in this process: what is wrong is found before anything starts. */
async function run(...words: readonly string[]): Promise<Pick<Ended, "code" | "out" | "err">> {
  const text = { out: "", err: "" };
  const io = {
    out: (part: string) => {
      text.out += part;
    },
    err: (part: string) => {
      text.err += part;
    },
    isTerminal: false,
    ask: async () => undefined,
    columns: 100,
  };
  const code = await main(["--state", site.state, ...words], io, systemMachine());
  return { code, ...text };
}

/** One line on stderr, nothing on stdout. */
async function failure(...words: readonly string[]) {
  const { code, out, err } = await run(...words);
  expect(out).toBe("");
  expect(err).toMatch(/^nodeyard: [^\n]+\n$/);
  return { code, line: err.trim().slice("nodeyard: ".length) };
}

describe("help and usage", () => {
  test("no command prints help and fails, like the old one", async () => {
    const { code, err } = await run();
    expect(code).toBe(1);
    expect(err).toContain("Usage: nodeyard");
  });
  test.each([
    ["--log-level", "loud", /"loud" is neither LEVEL nor AREA=LEVEL; levels are debug, info/],
    ["--log-level", "info,drivers=debug", /"drivers=debug" is neither .* areas process, launcher, .*driver/],
    ["--log-file", "/no-such-folder/x.log", /ENOENT.*name a file that can be written/],
  ])("%s %s is refused before anything starts", async (option, value, why) => {
    const { code, line } = await failure(option, value, "-c", site.config, "up");
    expect(code).toBe(2);
    expect(line).toMatch(why);
  });
  test("--help teaches by example", async () => {
    const { code, out } = await run("--help");
    expect(code).toBe(0);
    expect(out).toContain("$ nodeyard request fake-small:2 --wait");
  });
  test("sliverd alone starts no daemon: it prints its help and fails", async () => {
    const { code, out, err } = await run("sliverd");
    expect([code, out]).toEqual([1, ""]);
    expect(err).toMatch(/Usage: nodeyard sliverd [\s\S]* run /);
  });
  test("global options may stand after the command", async () => {
    const { code, err } = await run("info", "x", "-c", "/no/such.yaml");
    expect([code, err]).toEqual([1, expect.stringContaining("/no/such.yaml:1:1: the file cannot be read")]);
  });
  test("--version", async () => {
    expect(await site.run("--version")).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^Nodeyard version: \d+\./),
    });
  });
  test.each([
    [["bogus"], "unknown command 'bogus'"],
    [["lst"], "(Did you mean list?)"],
    [["list", "--bogus"], "unknown option '--bogus'"],
    [["request"], "missing required argument 'label'"],
    [["release"], "missing required argument 'lease'"],
    [["request", "a:0"], '"a:0" asks for 0 nodes'],
    [["request", "a", "--for", "soon"], '"soon" is not a duration'],
    [["release", "nonsense"], '"nonsense" is not a lease id'],
    [["delete", "x"], '"x" is not a node id'],
    [["explain", "x y"], "is not the id of a request"],
    [["--state", "", "list"], '--state "" names no folder'],
    [["up", "--listen", "nowhere"], '--listen: "nowhere" is not HOST:PORT'],
    [["up", "--webapp", "127.0.0.1:99999"], '--webapp: "127.0.0.1:99999" is not HOST:PORT'],
    [["up", "--tls-cert", "x"], "go together"],
    [["list", "--detail", "--leases"], "'--leases' cannot be used with option '--detail'"],
    [["request", "small:1e9"], "1e9 is not a number of nodes"],
    [["--log-level", "loud", "list"], '"loud" is neither LEVEL nor AREA=LEVEL'],
  ])("%j is not understood: exit code 2", async (words, text) => {
    const { code, out, err } = await run(...words);
    expect([code, out]).toEqual([2, ""]);
    expect(err).toMatch(/^nodeyard: [^\n]+\n$/);
    expect(err).toContain(text);
  });
});

describe("what cannot be done: exit code 1 and one line", () => {
  test("no Nodeyard runs", async () => {
    const { code, line } = await failure("list");
    expect(code).toBe(1);
    expect(line).toContain(
      `no Nodeyard runs on the state folder ${site.state}; start one with "nodeyard up"`,
    );
  });
  test("no such file", async () => {
    const { code, line } = await failure("-c", "/no/such.yaml", "list");
    expect(code).toBe(1);
    expect(line).toMatch(/^\/no\/such\.yaml:1:1: the file cannot be read: ENOENT/);
  });
  test("no such secure file", async () => {
    site.write(fakeConfig());
    const { code, line } = await failure("-c", site.config, "-s", "/no/secure.conf", "up");
    expect(code).toBe(1);
    expect(line).toMatch(/^\/no\/secure\.conf:.*ENOENT.*; name the secure file with -s FILE$/);
  });
  test("a state folder that this user cannot look into", async () => {
    // Permissions would not stop a test that runs as root; a link to itself does.
    symlinkSync("loop", `${site.folder}/loop`);
    const { code, line } = await failure("--state", `${site.folder}/loop`, "list");
    expect(code).toBe(1);
    expect(line).toMatch(/^cannot read \S+ \(ELOOP.*\): run this as the user that Nodeyard runs as/);
  });
  test("an error in the configuration names file, line, key and remedy", async () => {
    site.write("labels: []\nproviders:\n  - name: cloud\n    driver: bogus\n    pools: []\n");
    const { code, line } = await failure("-c", site.config, "up");
    expect(code).toBe(1);
    expect(line).toMatch(
      /nodepool\.yaml:4:\d+: providers\[0\] "cloud": driver: names driver bogus, which does not exist; /,
    );
  });
  test("a configuration for ZooKeeper is not run on an embedded tree", async () => {
    site.write(fakeConfig({ extra: "zookeeper-servers:\n  - host: 127.0.0.1\n    port: 2181\n" }));
    const { code, err } = await run("-c", site.config, "up");
    expect(code).toBe(1);
    expect(err).toMatch(
      /nodeyard: .*nodepool\.yaml names zookeeper-servers: start it with "nodeyard launcher -c /,
    );
  });
  test("a state folder that cannot be", async () => {
    site.write(fakeConfig());
    const { code, line } = await failure("--state", "/dev/null/x", "-c", site.config, "up");
    expect(code).toBe(1);
    expect(line).toMatch(
      /^cannot use the state folder \/dev\/null\/x \(.*\); name another with --state DIR$/,
    );
  });
});

describe("config-validate", () => {
  const validate = (...words: readonly string[]) => run("-c", site.config, "config-validate", ...words);

  test("a good file: 0, and one line in the old shape", async () => {
    site.write(fakeConfig());
    const { code, out, err } = await validate("--strict");
    expect([code, out]).toEqual([0, ""]);
    expect(err).toMatch(
      /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO nodepool\.cmd\.config_validator: validating .*nodepool\.yaml\n/,
    );
    const [, verdict, providers] = err.split("\n");
    expect(verdict).toMatch(/ INFO \S+: valid: a launcher loads it; 0 errors, 0 warnings, 0 hints$/);
    expect(providers).toMatch(/config_validator: providers with an installed driver: .*\(fake\)$/);
  });
  test("every error of a bad file: 1", async () => {
    site.write(`${fakeConfig()}    bogus: 1\nunheard-of: 2\n`);
    const { code, err } = await validate();
    expect(code).toBe(1);
    expect(err.match(/ ERROR nodepool\.cmd\.config_validator: /g)?.length).toBeGreaterThanOrEqual(2);
    expect(err).toContain("unheard-of");
    expect(err).toContain("bogus");
  });
  test("what no launcher can load: 1, with the verdict first, then errors, warnings and hints", async () => {
    const text = fakeConfig().replace("  - {name: large, min-ready: 0}\n", "");
    site.write(
      `zookeeper-servers: [{host: a}]\n${text.replace("cloud: memory", "cloud: memory\n    nodepool-id: x")}`,
    );
    const { code, err } = await validate();
    expect(code).toBe(1);
    const lines = err.split("\n").map((line) => line.replace(/^\S+ \S+ (\w+) \S+: /, "$1 "));
    expect(lines[1]).toBe("ERROR not valid: no launcher can load it; 1 error, 1 warning, 1 hint");
    expect(lines.slice(2, 5)).toEqual([
      expect.stringMatching(/^ERROR .*names label large/),
      expect.stringMatching(/^WARNING .*plain TCP/),
      expect.stringMatching(/^INFO hint: .*nodepool-id: has no effect/),
    ]);
  });
  test("what it comes to, for programs: providers without a driver, and the labels that go with them", async () => {
    site.write(`${fakeConfig().replace("labels:\n", "labels:\n  - {name: cloudy, min-ready: 0}\n")}
  - name: ec2
    driver: example
    pools: [{name: p, max-servers: 2, labels: [{name: cloudy, profile: x}, {name: large, profile: x}]}]
`);
    const { code, out } = await validate("--json");
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      valid: true,
      loadable: false,
      errors: 0,
      warnings: 1,
      providers: [
        { driver: "fake", installed: true, labels: expect.arrayContaining(["large"]) },
        { name: "ec2", driver: "example", installed: false, labels: ["cloudy", "large"] },
      ],
      lost_labels: ["cloudy"],
      findings: [{ severity: "warning", source: "machine", path: expect.stringContaining('"ec2": driver') }],
    });
  });
  test("--migration: what can move, what stays, and what does something else, with its lines", async () => {
    site.write(`${fakeConfig()}
        priority: 5
  - {name: ec2, driver: example, priority: 7, pools: [{name: p, max-servers: 2, labels: [{name: cloudy, profile: x}]}]}
`);
    const { code, out } = await validate("--migration");
    expect(code).toBe(1);
    const [, move, stay, lost, change, differ] = out.split("\n## ");
    expect(move).toMatch(/^Providers that can move\n\n- fake-cloud \(fake\), labels small, large\n$/);
    expect(stay).toContain("- ec2 (example), labels cloudy\n");
    expect(lost).toContain("- cloudy\n");
    expect(change).toContain("names cloudy, which is not in the top-level labels");
    const priority = readFileSync(site.config, "utf8").split("\n").indexOf("        priority: 5") + 1;
    expect(differ).toMatch(new RegExp(`- \`priority\`: .*60 s.*\\(line ${priority}\\)\n`));
    const { differences } = JSON.parse((await validate("--migration", "--json")).out);
    expect(differences).toContainEqual({
      path: 'providers[0] "fake-cloud": pools[0].priority',
      line: priority,
      column: 9,
      message: expect.stringContaining("60 s"),
    });
    expect(JSON.parse((await validate("--json")).out).differences).toEqual([]);
  });
  test("--split: two files for two kinds of launchers, each valid, and nothing is overwritten", async () => {
    site.write(fakeConfig());
    expect((await validate("--split", site.folder)).err).toContain("nothing to split");
    site.write(`${fakeConfig()}
  # Python's.
  - {name: ec2, driver: example, pools: [{name: p, max-servers: 2, labels: [{name: small, profile: x}]}]}
`);
    // It would overwrite the configuration.
    expect((await validate("--split", site.folder)).err).toContain("nodepool.yaml is there already");
    const folder = join(site.folder, "split");
    const split = await validate("--split", folder);
    expect(split.code).toBe(0);
    for (const name of ["nodeyard.yaml", "nodepool.yaml"])
      expect(split.err).toContain(`wrote ${join(folder, name)}`);
    const summary = async (name: string) => {
      const { code, out } = await run("-c", join(folder, name), "config-validate", "--json");
      const { providers } = JSON.parse(out) as { providers: readonly { name: string }[] };
      return [code, ...providers.map((provider) => provider.name)];
    };
    expect(await summary("nodeyard.yaml")).toEqual([0, "fake-cloud"]);
    expect(await summary("nodepool.yaml")).toEqual([0, "ec2"]);
    expect(readFileSync(join(folder, "nodepool.yaml"), "utf8")).toContain("  # Python's.\n  - {name: ec2");
  });
  test("files that the configuration names, and this machine lacks, only with --strict", async () => {
    const { folder } = site;
    writeFileSync(join(folder, "cert.pem"), "");
    site.write(
      `${fakeConfig()}zookeeper-tls: {cert: ${folder}/cert.pem, key: ${folder}/key.pem, ca: ${folder}}\nimages-dir: ${folder}/images\n`,
    );
    expect((await validate()).code).toBe(0);
    const { code, err } = await validate("--strict");
    expect(code).toBe(1);
    expect(err).not.toContain("cert.pem");
    const missing = "which does not exist on this machine; create it, or correct the path\n";
    expect(err).toContain(`zookeeper-tls.key: names ${folder}/key.pem, ${missing}`);
    expect(err).toContain(`zookeeper-tls.ca: names ${folder}, which is a folder; write the path of a file\n`);
    expect(err).toContain(`images-dir: names ${folder}/images, ${missing}`);
    expect((await validate("--strict", "--no-files")).code).toBe(0);
  });
  test("bytes that are not UTF-8: 1, with the line, and no daemon starts on them", async () => {
    writeFileSync(site.config, Buffer.from("labels:\n  - name: caf\xe9\n", "latin1"));
    const said = `${site.config}:2:1: the file has bytes in this line that are not UTF-8; save it as UTF-8\n`;
    const { code, err } = await validate();
    expect(code).toBe(1);
    expect(err).toContain(`ERROR nodepool.cmd.config_validator: ${said}`);
    expect(await failure("-c", site.config, "up")).toMatchObject({ code: 1, line: said.trimEnd() });
  });
  test("a file that is not there: 1", async () => {
    const { code, err } = await run("-c", "/no/such.yaml", "config-validate");
    expect(code).toBe(1);
    expect(err).toContain("ERROR");
  });
});
