import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DriverError, UploadOrder } from "@nodeyard/driver";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { requireQemu, uploadOf } from "../../../../testing/qemu/index.ts";
import { Copies } from "../src/edge/copies.ts";
import { link, overlay } from "../src/edge/start.ts";
import { Uploads } from "../src/edge/uploads.ts";
import { FILES } from "../src/machine/command-line.ts";

const skip = requireQemu() !== undefined;
const { signal } = new AbortController();

describe.skipIf(skip)("images", () => {
  let folder: string;
  let copies: Copies;
  const at = (name: string) => join(folder, name);
  const qemuImg = (...words: string[]) => execFileSync("qemu-img", words, { cwd: folder });
  const refused = (work: Promise<unknown>) =>
    work.then(
      () => "taken",
      (error: DriverError) => `${error.kind}: ${error.message}`,
    );

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "nodeyard-images-"));
    execFileSync("mkdir", [at("copies"), at("uploads")]);
    copies = new Copies(at("copies"), null, systemClock, systemRandom);
    writeFileSync(at("secret"), "of the host");
  });
  afterEach(() => {
    copies.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test("a header that names another file of the host is refused, and nothing of it is kept", async () => {
    qemuImg("create", "-q", "-f", "qcow2", "-F", "raw", "-b", at("secret"), "backed.qcow2");
    qemuImg("create", "-q", "-f", "qcow2", "-o", `data_file=${at("data")}`, "outside.qcow2", "1M");
    const image = (name: string) => refused(copies.image({ path: at(name), format: "qcow2" }, signal));
    expect(await image("backed.qcow2")).toMatch(/^configuration: .* has a backing file/);
    expect(await image("outside.qcow2")).toMatch(/^configuration: .* data in another file/);
    expect(readdirSync(at("copies"))).toEqual([]);
  });

  test("a raw image that holds a qcow2 header is raw; a qcow2 that is none is refused", async () => {
    qemuImg("create", "-q", "-f", "qcow2", "-F", "raw", "-b", at("secret"), "backed.qcow2");
    const { size } = statSync(at("backed.qcow2"));
    const raw = await copies.image({ path: at("backed.qcow2"), format: "raw" }, signal);
    expect(raw).toMatchObject({ format: "raw", virtualSize: Math.ceil(size / 512) * 512 });
    writeFileSync(at("text"), "no image".repeat(1000));
    expect(await refused(copies.image({ path: at("text"), format: "qcow2" }, signal))).toMatch(
      /^configuration: /,
    );
    expect(await refused(copies.image({ path: at("none"), format: "raw" }, signal))).toMatch(
      /^configuration: /,
    );
  });

  test("a machine's disk says what is below it: a header in a raw image is never looked at", async () => {
    qemuImg("create", "-q", "-f", "qcow2", "-F", "raw", "-b", at("secret"), "backed.qcow2");
    const node = at("node");
    execFileSync("mkdir", ["-p", join(node, "run")]);
    const image = await copies.image({ path: at("backed.qcow2"), format: "raw" }, signal);
    await link(node, { base: image });
    await overlay(node, { file: FILES.base, format: image.format }, 1, { account: null, signal });
    const text = qemuImg("info", "--output=json", "--backing-chain", "-f", "qcow2", "node/run/disk.qcow2");
    const chain = JSON.parse(String(text)) as { format: string }[];
    expect(chain.map(({ format }) => format)).toEqual(["qcow2", "raw"]);
  });

  test("one copy serves all launches; a changed file gets another copy, and running machines keep the old one", async () => {
    qemuImg("create", "-q", "-f", "qcow2", "disk", "1M");
    const ask = () => copies.image({ path: at("disk"), format: "qcow2" }, signal);
    const [first, same] = await Promise.all([ask(), ask()]);
    expect(same).toEqual(first);
    expect(await ask()).toEqual(first);
    execFileSync("ln", [first?.file ?? "", at("mine")]);
    qemuImg("create", "-q", "-f", "qcow2", "disk", "2M");
    const second = await ask();
    expect(second.virtualSize).toBe(2 * 1024 * 1024);
    expect(readdirSync(at("copies")).length).toBe(1);
    expect(statSync(at("mine")).nlink).toBe(1);
  });

  test("an upload that is not what the builder made is not kept", async () => {
    qemuImg("create", "-q", "-f", "qcow2", "disk", "1M");
    const uploads = new Uploads(at("uploads"), null, systemClock);
    const order = { ...uploadOf(at("disk"), "qcow2"), progress: () => {} } as unknown as UploadOrder;
    const wrong = { ...order, sha256: order.sha256.replace(/./g, "0") };
    expect(await refused(uploads.add("one", wrong, signal))).toMatch(/^transient: .* arrived with sha256/);
    expect(await uploads.names()).toEqual([]);
    await uploads.add("one", order, signal);
    expect(await uploads.get("one")).toMatchObject({ format: "qcow2", virtualSize: 1024 * 1024 });
  });
});
