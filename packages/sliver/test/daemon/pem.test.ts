import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DaemonRig } from "./rig.ts";

describe("a daemon whose certificates cannot be read", () => {
  const rig = new DaemonRig();
  beforeAll(() => rig.prepare());
  afterAll(() => rig.stop());

  const url = "https://centre.example.org/documents";
  const session = "a session";
  test.each([
    [{ documents: { url, caFile: "/none.pem" } }, "documents.caFile: /none.pem cannot be read (ENOENT)"],
    [{ documents: { url, keyFile: "/none.pem" } }, "documents.keyFile: /none.pem cannot be read (ENOENT)"],
    [{ plc: { url, session, caFile: "/none.pem" } }, "plc.caFile: /none.pem cannot be read (ENOENT)"],
    [{ plc: { url, session, caFile: "/" } }, "plc.caFile: / cannot be read (EISDIR)"],
  ])("%j: says which key of its file is wrong, and ends with 1", async (config, text) => {
    await rig.configure(config);
    const refusal = expect.stringMatching(/^exit 1: [^\n]*\n$/);
    const error = await rig.start().catch((cause: Error) => cause);
    expect((error as Error).message.replace(/info .*\n/g, "")).toEqual(refusal);
    expect((error as Error).message).toContain(`error ${text}; name a PEM file`);
  });

  test("one that is no PEM", async () => {
    const file = join(rig.folder, "ca.der");
    writeFileSync(file, Buffer.from([0x30, 0x82, 1, 2]));
    await rig.configure({ documents: { url, caFile: file } });
    await expect(rig.start()).rejects.toThrow(`documents.caFile: ${file} holds nothing in PEM`);
  });
});
