import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Certificates } from "./certificates.ts";
import { DaemonRig } from "./rig.ts";

describe("a daemon whose certificates cannot be read", () => {
  const rig = new DaemonRig();
  beforeAll(() => rig.prepare());
  afterAll(() => rig.stop());

  const url = "https://centre.example.org/documents";
  const session = "a session";
  test.each([
    [{ documents: { url, caFile: "/none.pem" } }, "documents.caFile: /none.pem cannot be read (ENOENT)"],
    [
      { documents: { url, certFile: "/none.pem", keyFile: "/none.pem" } },
      "documents.certFile: /none.pem cannot be read (ENOENT)",
    ],
    [{ plc: { url, session, caFile: "/none.pem" } }, "plc.caFile: /none.pem cannot be read (ENOENT)"],
    [{ plc: { url, session, caFile: "/" } }, "plc.caFile: / cannot be read (EISDIR)"],
  ])("%j: says which key of its file is wrong, and ends with 1", async (config, text) => {
    await rig.configure(config);
    const refusal = expect.stringMatching(/^exit 1: [^\n]*\n$/);
    const error = await rig.start().catch((cause: Error) => cause);
    expect((error as Error).message.replace(/info .*\n/g, "")).toEqual(refusal);
    expect((error as Error).message).toContain(`error ${text}; name a PEM file`);
  });

  test("the key of a node: one way to log in, from a file that can be read", async () => {
    const nodeKeyFile = join(rig.folder, "node-key");
    await rig.configure({ plc: { url, session, nodeKeyFile } });
    await expect(rig.start()).rejects.toThrow("must have session or nodeKeyFile, and not both");
    await rig.configure({ plc: { url, nodeKeyFile } });
    await expect(rig.start()).rejects.toThrow(`plc.nodeKeyFile: ${nodeKeyFile} cannot be read (ENOENT)`);
    writeFileSync(nodeKeyFile, "two\nlines\n");
    await expect(rig.start()).rejects.toThrow(`plc.nodeKeyFile: ${nodeKeyFile} holds no key`);
  });

  test("one that is no PEM", async () => {
    const file = join(rig.folder, "ca.der");
    writeFileSync(file, Buffer.from([0x30, 0x82, 1, 2]));
    await rig.configure({ documents: { url, caFile: file } });
    await expect(rig.start()).rejects.toThrow(`documents.caFile: ${file} holds nothing in PEM`);
  });

  test("ones that cannot be used together, or hold something else than their key says", async () => {
    const files = new Certificates(rig.folder);
    for (const name of ["one", "two"]) files.make(name);
    files.lock("one.key", "locked.key");
    const [ca, cert, key] = [files.path("ca.pem"), files.path("one.pem"), files.path("one.key")];
    for (const [keys, text] of [
      [{ caFile: key }, `documents.caFile: ${key} holds no certificate (no start line); name`],
      [{ certFile: key, keyFile: cert }, `documents.certFile: ${key} holds no certificate`],
      [
        { certFile: cert, keyFile: ca },
        `documents.keyFile: ${ca} holds no private key that can be read without`,
      ],
      [
        { certFile: cert, keyFile: files.path("locked.key") },
        "locked.key holds no private key that can be read without",
      ],
      [
        { certFile: cert, keyFile: files.path("two.key") },
        `two.key is not the key of the certificate in ${cert}; name`,
      ],
      [{ certFile: cert }, "documents: certFile and keyFile belong together; name both, or neither"],
      [{ keyFile: key }, "documents: certFile and keyFile belong together"],
    ] as const) {
      await rig.configure({ documents: { url, ...keys } });
      await expect(rig.start(), text).rejects.toThrow(text);
    }
  });

  test.each([
    "https://",
    "https://exa mple.org/",
    "https://example.org:99999/",
    "https://node:secret@example.org/",
    "http://example.org/",
    "http://127.example.org/",
  ])("%s: is not a URL to fetch documents from", async (none) => {
    await rig.configure({ documents: { url: none } });
    await expect(rig.start()).rejects.toThrow("documents.url: must be a URL that begins with https://");
  });
});
