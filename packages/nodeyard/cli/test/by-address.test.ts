import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  changeImageBuild,
  changeImageUpload,
  encodeImageBuild,
  encodeImageUpload,
  encodeNode,
  newImageBuild,
  newImageUpload,
  newNode,
  paths,
} from "@nodeyard/model";
import { openTree } from "@nodeyard/process";
import { systemClock } from "@nodeyard/runtime";
import { systemMachine } from "@nodeyard/telemetry/machine";
import { ensurePath } from "@nodeyard/tree";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../../pool/launcher/test/rig.ts";
import { main } from "../src/index.ts";
import { fakeConfig, Site } from "./nodeyard.ts";

interface Printed {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

type Env = Readonly<Record<string, string>>;

const started = systemClock.now();
let site: Site;
let byTree: Env;
let bySocket: Env;
let url: string;
let waiting: string;

/** Runs a command in this process, against the Nodeyard of another. */
async function run(env: Env, ...words: readonly string[]): Promise<Printed> {
  let [out, err] = ["", ""];
  const io = {
    out: (text: string) => {
      out += text;
    },
    err: (text: string) => {
      err += text;
    },
    isTerminal: false,
    ask: async () => undefined,
    columns: 100,
  };
  // Ages stand still; of an explanation the tree itself says what time it is.
  const now = words[0] === "explain" ? () => systemClock.now() : () => started;
  const code = await main(words, io, { ...systemMachine(), env, clock: { ...systemClock, now } });
  return { code, out: words[0] === "explain" ? withoutSeconds(out) : out, err };
}

/** How long ago things were differs between two looks. */
function withoutSeconds(text: string): string {
  return text.replace(/\b\d+ s\b/g, "N s");
}

async function done(env: Env, ...words: readonly string[]): Promise<string> {
  const { code, out, err } = await run(env, ...words);
  if (code !== 0) throw new Error(`${words.join(" ")}: ${code} ${err}`);
  return out;
}

/** Demands the same output of both, at a moment at which the tree's does not change. What a server knows follows the tree. */
async function same(...words: readonly string[]): Promise<string> {
  let stable = 0;
  return until(`${words.join(" ")} stands still`, async () => {
    const before = await run(byTree, ...words);
    const found = await run(bySocket, ...words);
    const after = await run(byTree, ...words);
    if (JSON.stringify(before) !== JSON.stringify(after)) return undefined;
    if (JSON.stringify(before) !== JSON.stringify(found) && ++stable < 10) return undefined;
    expect(found).toEqual(before);
    return found.out + found.err;
  });
}

type BuildAt = readonly [image: string, id: string, age: number];

/** Records of images, as builders write them. */
async function addImages(...builds: readonly BuildAt[]): Promise<void> {
  const tree = await openTree({ stateFolder: site.state }, systemMachine());
  const made = systemClock.now() / 1000 - 90_000.5;
  for (const [image, id, age] of builds) {
    await ensurePath(tree, paths.imageBuild(image, id));
    const values = { builder: "b1", builderId: "uuid", formats: ["qcow2", "raw"] };
    const record = changeImageBuild(newImageBuild(id, values, made - age), { state: "ready" }, made - age);
    await tree.set(paths.imageBuild(image, id), encodeImageBuild(record));
    for (const provider of ["fake-cloud", "another"]) {
      const path = paths.imageUpload(image, id, provider, "0000000001");
      const upload = newImageUpload({ username: "zuul", pythonPath: "auto", shellType: null }, made);
      const ready = { state: "ready", externalId: `x-${id}`, externalName: `${image}-1` } as const;
      await ensurePath(tree, path);
      // The folder's counter is past the number, as when the tree itself gave it.
      await tree.delete((await tree.create(`${path.slice(0, -11)}/counts`)).path);
      await tree.set(path, encodeImageUpload(changeImageUpload(upload, ready, made)));
    }
  }
  await tree.close();
}

/** A node that a person holds; no launcher has its lock. */
async function addHeldNode(id = "0000777777", provider = "fake-cloud"): Promise<string> {
  const tree = await openTree({ stateFolder: site.state }, systemMachine());
  const values = { type: ["small"], provider, pool: "main", externalId: "none" };
  const record = { ...newNode(values, systemClock.now() / 1_000), state: "hold" } as const;
  await ensurePath(tree, paths.node(id));
  await tree.set(paths.node(id), encodeNode(record));
  await tree.close();
  return id;
}

beforeAll(async () => {
  site = new Site(fakeConfig());
  const up = site.start("-c", site.config, "up", "--webapp", "127.0.0.1:0");
  await up.printed("Nodeyard is up");
  await up.printed('"address":"http://');
  url = /"address":"(http:\/\/[^"]+)"/.exec(up.err)![1]!;
  byTree = { NODEYARD_STATE: site.state };
  bySocket = { NODEYARD_URL: `${site.state}/http.sock` };
  await addImages(
    ["noble", "0000000001", 700_000],
    ["noble", "0000000002", 0],
    ["bookworm", "0000000010", 100_000],
  );
  await done(bySocket, "request", "small", "--wait");
  // It waits for the limit of the pool.
  waiting = (await done(bySocket, "request", "large:5")).trim();
});
afterAll(() => site.close());

describe("the command line at an address prints what it prints at the tree", () => {
  test.each([
    "list",
    "list --json",
    "list --detail",
    "list --detail --json --state in-use --label small",
    "list --label huge",
    "list --pool huge",
    "list --leases",
    "list --leases --json",
    "request-list",
    "request-list --json --state requested",
    "image-list",
    "image-list --json --provider another",
    "dib-image-list",
    "dib-image-list --json",
    "image-status",
    "image-status --json",
    "info fake-cloud",
    "info another --json",
    "info misspelt",
    "erase fake-cloud",
    "erase another",
    "delete 0000009999 --now",
    "image-build misspelt --wait",
    "image-build noble --wait --timeout 1s",
    "top --once",
    "explain label small",
    "explain image noble",
    "console 9999",
    "console noble",
    "release 000000000000 --json",
    "retire 0000009999",
    "retire 0000777777 --json",
    "dib-image-delete noble-0000000009",
    "image-delete --provider fake-cloud --image noble --build-id 0000000009 --upload-id 0000000001",
  ])("%s", async (line) => {
    expect(await same(...line.split(" "))).not.toBe("");
  });

  test("explain, of what waits and of what has its nodes", async () => {
    const leases = JSON.parse(await same("list", "--leases", "--json")) as readonly {
      readonly id: string;
      readonly request: string;
      readonly nodes: readonly string[];
    }[];
    expect(leases).toHaveLength(2);
    const ids = leases.flatMap(({ id, request, nodes }) =>
      nodes.length > 0 ? [id, ...nodes] : [id, request],
    );
    for (const id of ids) expect(await same("explain", id)).toContain(id);
    // The file of this machine is no file of the server.
    const json = async (env: Env) => {
      const { journal: _, ...said } = JSON.parse(await done(env, "explain", ids[0]!, "--json"));
      return said;
    };
    expect(await json(bySocket)).toEqual(await json(byTree));
  });

  test("console, of a node and of one whose provider no launcher serves", async () => {
    const [lease] = JSON.parse(
      await done(byTree, "list", "--leases", "--json", "--state", "granted"),
    ) as readonly {
      readonly nodes: readonly string[];
    }[];
    const node = lease!.nodes[0]!;
    // The zeros of the id may be left out, and what a terminal would obey is taken out.
    expect(await same("console", String(Number(node)))).toMatch(
      /^Booting \S+\nmachine-id \S+\n\S+ login:\n$/,
    );
    const printed = JSON.parse(await same("console", node, "--json"));
    expect(printed).toEqual({
      node,
      lines: expect.arrayContaining([expect.stringMatching(/^Booting /)]),
      cut: false,
    });
    const lost = await addHeldNode("0000777770", "left");
    const refused = await same("console", lost);
    expect(refused).toBe(
      `nodeyard: cannot show the console of node ${lost}: no launcher that serves left answers; "nodeyard explain ${lost}" shows its life so far\n`,
    );
    for (const words of [
      ["delete", lost],
      ["delete", lost, "--now"],
    ]) {
      expect((await run(byTree, ...words)).code).toBe(1);
      expect(await same(...words)).toBe(
        `nodeyard: no launcher serves provider left, so nobody would delete node ${lost}: put the provider back into a configuration, or give up the record, and nothing else, with "nodeyard delete ${lost} --forget"\n`,
      );
    }
    const { code, err } = await run(bySocket, "delete", lost, "--forget");
    expect([code, err]).toEqual([
      0,
      `nodeyard: WARNING: the record of node ${lost} is gone. Machine none of provider left, in no place, may run on and cost: delete it there\n`,
    ]);
    expect(await run(byTree, "delete", lost, "--forget")).toMatchObject({ code: 1, out: "" });
  });

  test("image-build --wait returns the build that ends, delete --now when the node is gone, and erase what it removed", async () => {
    const built = run(bySocket, "image-build", "bookworm", "--wait", "--json");
    await until("a build is requested", async () => {
      const images = JSON.parse(await done(byTree, "image-status", "--json")) as readonly object[];
      return images.some((one) =>
        JSON.stringify(one).includes('"bookworm","paused":false,"build_request":"pending"'),
      );
    });
    await addImages(["bookworm", "0000000011", -1]);
    expect(JSON.parse((await built).out)).toEqual({ image: "bookworm", build: "0000000011", state: "ready" });
    const [lease] = JSON.parse(await done(byTree, "list", "--leases", "--json")) as readonly {
      readonly nodes: readonly string[];
    }[];
    // It is in use, and its launcher has its lock.
    expect((await run(bySocket, "delete", lease!.nodes[0]!, "--now")).err).toContain(lease!.nodes[0]!);
    const held = await addHeldNode();
    expect(await done(bySocket, "delete", held, "--now", "--json")).toBe("[]\n");
    expect(JSON.parse(await done(byTree, "list", "--json"))).not.toContainEqual(
      expect.objectContaining({ id: held }),
    );
    const erased = JSON.parse(await done(bySocket, "erase", "another", "--force", "--json"));
    expect(erased).toEqual({ provider: "another", uploads: 4, nodes: [], kept: [] });
    expect(await same("info", "another")).toContain("no launcher serves");
  });

  test("image data is exported and imported, and what cannot be imported is refused, in the same words", async () => {
    const file = join(site.folder, "images.json");
    const exported: string[] = [];
    for (const env of [byTree, bySocket]) {
      const { code, out, err } = await run(env, "export-image-data", file);
      expect([code, out, statSync(file).mode & 0o777]).toEqual([0, "", 0o600]);
      exported.push(err + readFileSync(file, "utf8"));
    }
    expect(exported[1]).toBe(exported[0]);
    await done(bySocket, "dib-image-delete", "bookworm-0000000010");
    const builds = async () => JSON.parse(await done(byTree, "dib-image-list", "--json")) as object[];
    const wanted = expect.objectContaining({ id: "bookworm-0000000010", state: "ready" });
    expect(await builds()).not.toContainEqual(wanted);
    const reported = await run(bySocket, "import-image-data", file);
    expect(reported).toEqual({
      code: 0,
      out: "",
      err: expect.stringContaining("records written to the tree"),
    });
    expect(await builds()).toContainEqual(wanted);
    expect(await run(byTree, "import-image-data", file)).toEqual(reported);
    expect(await same("import-image-data", file, "--json")).toContain("records");

    // As long as an export may be, and not as short as other bodies.
    const wrong = { records: { "/nodepool/images/noble/pause": "x".repeat(100_000) } };
    const token = (await done(byTree, "token", "create", "importer", "--role", "operator")).trim();
    const reply = await fetch(`${url}/v1/image-data`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(wrong),
    });
    expect([reply.status, await reply.json()]).toMatchObject([400, { code: "operation.bad_export" }]);
    writeFileSync(file, JSON.stringify(wrong.records));
    expect(await same("import-image-data", file)).toContain("it is not a pause flag");
  });

  test("clouds are looked through by the launcher, and builds and uploads are marked for deletion", async () => {
    for (const command of ["leaks", "alien-image-list"])
      expect(JSON.parse(await done(bySocket, command, "--json"))).toEqual(expect.any(Array));
    const { code, err } = await run(bySocket, "leaks", "--provider", "misspelt");
    expect([code, err]).toEqual([1, expect.stringMatching(/no provider misspelt; it has: fake-cloud/)]);
    const upload = ["--image", "noble", "--build-id", "0000000001", "--upload-id", "0000000001"];
    const place = { provider: "fake-cloud", image: "noble", build: "0000000001", upload: "0000000001" };
    expect(
      JSON.parse(await done(bySocket, "image-delete", "--provider", "fake-cloud", ...upload, "--json")),
    ).toEqual({ ...place, state: "deleting" });
    expect(JSON.parse(await done(byTree, "image-list", "--json"))).toContainEqual(
      expect.objectContaining({ id: "0000000001", provider: "fake-cloud", state: "deleting" }),
    );
    await done(bySocket, "dib-image-delete", "noble-0000000002");
    expect(JSON.parse(await done(byTree, "dib-image-list", "--json"))).toContainEqual(
      expect.objectContaining({ state: "deleting" }),
    );
  });

  test("options that name the tree come before the address", async () => {
    const nowhere = { NODEYARD_URL: "http://127.0.0.1:1" };
    expect(await done(nowhere, "list", "--state", "ready", "--json").catch(String)).toContain(
      "does not answer",
    );
    expect(await done(nowhere, "--state", site.state, "list", "--leases")).toContain("granted");
    expect((await run({ NODEYARD_URL: "here" }, "list")).err).toContain("no address of a Nodeyard");
  });
});

describe("by a token over TCP", () => {
  // Others would wait behind it.
  beforeAll(async () => void (await done(bySocket, "release", waiting)));

  const byToken = async (name: string, ...words: readonly string[]): Promise<Env> => {
    const token = (await done(byTree, "token", "create", name, ...words)).trim();
    const file = join(site.folder, `${name}.token`);
    writeFileSync(file, `${token}\n`);
    return { NODEYARD_URL: url, NODEYARD_TOKEN_FILE: file };
  };

  test("a user requests a node, waits for it, sees its own lease only, and releases it", async () => {
    const user = await byToken("web", "--role", "user", "--label", "small", "--tenant", "web");
    const granted = await run(user, "request", "small", "--wait", "--json");
    const { lease, state, nodes } = JSON.parse(granted.out);
    expect([state, nodes]).toMatchObject(["granted", [{ label: ["small"], host_keys: expect.any(Array) }]]);
    expect(granted.err).toContain(`lease ${lease}  granted`);
    const listed = async (env: Env) => JSON.parse(await done(env, "list", "--leases", "--json")) as object[];
    expect(await listed(user)).toMatchObject([{ id: lease, owner: "token:web", nodes: [nodes[0].id] }]);
    expect((await listed(byTree)).length).toBeGreaterThan(1);
    expect((await run(user, "request", "large")).err).toContain('token:web may not request "large"');
    expect(await done(user, "release", lease)).toBe(`released ${lease}\n`);
  });

  test("an operator holds and deletes nodes, builds and pauses images; an admin makes tokens", async () => {
    const operator = await byToken("ops", "--role", "operator");
    await done(operator, "image-pause", "bookworm");
    expect(JSON.parse(await same("dib-image-list", "--json"))).toContainEqual(
      expect.objectContaining({ image: "bookworm", paused: true }),
    );
    await done(operator, "image-unpause", "bookworm");
    expect((await run(operator, "image-pause", "misspelt")).err).toContain("no diskimage misspelt");
    expect((await run(operator, "image-build", "noble")).code).toBe(0);
    expect(await done(byTree, "image-status")).toContain("pending");
    const [lease] = (await done(operator, "request", "small")).trim().split("\n");
    const ready = await until("it is granted", async () => {
      const rows = JSON.parse(await done(operator, "list", "--leases", "--json")) as readonly {
        readonly id: string;
        readonly nodes: readonly string[];
      }[];
      return rows.find(({ id }) => id === lease)?.nodes[0];
    });
    expect((await run(operator, "hold", ready, "--comment", "look")).err).toContain(ready);
    await done(operator, "release", lease!);
    expect((await run(operator, "delete", "0000009999")).code).toBe(1);
    expect((await run(operator, "token", "list")).err).toContain("needs one of: admin");
    const admin = await byToken("root", "--role", "admin");
    const made = JSON.parse(await done(admin, "token", "create", "new", "--role", "viewer", "--json"));
    expect(made).toMatchObject({ name: "new", token: expect.stringMatching(/^nyt_new_/) });
    expect(await done(admin, "token", "list")).toBe(await done(byTree, "token", "list"));
    await done(admin, "token", "revoke", "new");
    expect((await run({ NODEYARD_URL: url, NODEYARD_TOKEN: made.token }, "list")).err).toContain(
      "the token is not known here, has expired or was revoked",
    );
  });
});
