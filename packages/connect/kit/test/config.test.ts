import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { ConnectConfigError, connectorKind, Keys, readConnectConfig, readSecret } from "../src/index.ts";

const demo = connectorKind(
  "demo",
  z.strictObject({ listen: Keys.address, labels: z.record(z.string(), Keys.label).default({}) }),
  async () => ({ close: async () => {} }),
);
const read = (text: string) => readConnectConfig(text, "connect.yaml", [demo]);

function refused(text: string): string {
  try {
    read(text);
  } catch (error) {
    if (error instanceof ConnectConfigError) return error.message;
    throw error;
  }
  return "accepted";
}

describe("connect.yaml", () => {
  test("sections have the options of their kinds, with defaults", () => {
    const { sections, nodeyard, ssh } = read(`
nodeyard: {url: /run/http.sock}
connectors:
  - {name: one, system: demo, listen: "127.0.0.1:8080"}
  - {name: two, system: demo, listen: "[::1]:0"}
`);
    expect(nodeyard).toEqual({ url: "/run/http.sock" });
    expect(ssh).toEqual({});
    expect(sections.map(({ name, options }) => [name, options])).toEqual([
      ["one", { listen: { host: "127.0.0.1", port: 8080 }, labels: {} }],
      ["two", { listen: { host: "::1", port: 0 }, labels: {} }],
    ]);
  });

  test.each([
    ["", "connect.yaml:1: connectors: is missing, and must be a list"],
    ["connectors: []", "connect.yaml:1: connectors: has 0 entries, but must have at least 1"],
    [
      "connectors:\n  - name: a\n    system: dmo\n",
      'connect.yaml:3: connectors.0.system: there is no "dmo"; did you mean demo? known: demo',
    ],
    [
      "connectors:\n  - name: a\n    system: demo\n    listen: here\n",
      "connect.yaml:4: connectors.0.listen: is a string, but must be HOST:PORT, as 127.0.0.1:8080",
    ],
    [
      "connectors:\n  - name: a\n    system: demo\n    listen: h:1\n    lisen: x\n",
      'connect.yaml:2: connectors.0: has unknown fields: "lisen"; remove them; did you mean',
    ],
    [
      "connectors:\n  - {name: a, system: demo, listen: 'h:1'}\n  - {name: a, system: demo, listen: 'h:2'}\n",
      "connect.yaml:3: connectors.1.name: a is the name of another connector, too",
    ],
    ["connectors: [", "connect.yaml: "],
  ])("%j is refused with its place", (text, message) => expect(refused(text)).toContain(message));

  test("a secret is one word of a file, and no message has it", () => {
    const folder = mkdtempSync(join(tmpdir(), "nodeyard-connect-"));
    const [good, bad] = [join(folder, "good"), join(folder, "bad")];
    writeFileSync(good, "of-connect-yaml-alone\n");
    writeFileSync(bad, "two words");
    expect(readSecret(good)).toBe("of-connect-yaml-alone");
    expect(messageOf(new Error("the token of-connect-yaml-alone"))).not.toContain("of-connect-yaml-alone");
    expect(() => readSecret(bad)).toThrow(`${bad} has to hold one word`);
    expect(() => readSecret(join(folder, "none"))).toThrow(`cannot read ${join(folder, "none")}: ENOENT`);
    rmSync(folder, { recursive: true });
  });
});
