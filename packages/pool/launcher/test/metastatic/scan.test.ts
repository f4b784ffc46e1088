import type { Scanner } from "@nodeyard/driver";
import { describe, expect, test } from "vitest";
import { fakeProvider } from "../rules/world.ts";
import { config, Lab } from "./lab.ts";

type Order = Parameters<Scanner["scan"]>[0];

const CHECKED = { "host-key-checking": true, "grace-time": 60 };

function large(label: object) {
  const labels = [{ name: "large", "cloud-image": "image", "flavor-name": "Fake Flavor", ...label }];
  return fakeProvider("metal", {}, { labels });
}

/** Answers with `keys`, and keeps what it was asked. */
function answering(hostKeys: readonly string[]): Scanner & { readonly asked: Order[] } {
  const asked: Order[] = [];
  return {
    asked,
    scan: async (order) => {
      asked.push(order);
      return { address: order.host, family: 4, hostKeys };
    },
  };
}

describe("a slot with host-key-checking", () => {
  test("is asked where its backing node answers, within boot-timeout, and has the keys that it shows", async () => {
    const lab = new Lab();
    const scan = answering(["ssh-rsa SLOT"]);
    await lab.start("a", config(CHECKED, {}, [large({})]), { scan });
    const node = await lab.get();
    const { interface_ip: host, connection_port: port } = lab.node(lab.place(node).backing)!;
    expect(scan.asked).toMatchObject([{ host, port, keys: true, timeoutMs: 5_000 }]);
    expect(node.host_keys).toEqual(["ssh-rsa SLOT"]);
  });

  test("keeps those of its backing node when it shows none", async () => {
    const lab = new Lab();
    await lab.start("a", config(CHECKED, {}, [large({})]), { scan: answering([]) });
    const node = await lab.get();
    const { host_keys } = lab.node(lab.place(node).backing)!;
    expect(host_keys).not.toEqual([]);
    expect(node.host_keys).toEqual(host_keys);
  });

  test("reads none where there is no login by ssh", async () => {
    const lab = new Lab();
    const scan = answering([]);
    const images = [{ name: "image", "connection-type": "winrm" }];
    const provider = fakeProvider(
      "metal",
      { "cloud-images": images },
      { labels: [{ name: "large", "cloud-image": "image", "flavor-name": "Fake Flavor" }] },
    );
    await lab.start("a", config(CHECKED, {}, [provider]), { scan });
    const node = await lab.get();
    expect(node.connection_type).toBe("winrm");
    expect(scan.asked.at(-1)).toMatchObject({ port: 5986, keys: false });
  });

  test("that was not asked to the end says nothing of its backing node", async () => {
    const lab = new Lab();
    let asked = false;
    const scan: Scanner = {
      scan: ({ signal = new AbortController().signal }) => {
        asked = true;
        return new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        });
      },
    };
    const a = await lab.start("a", config(CHECKED, {}, [large({})]), { scan });
    await lab.slice();
    await lab.until("it is asked", () => asked);
    const [backing] = lab.backings();
    await lab.settle(a.launcher.close(0));
    expect(lab.claims(backing!.id)).not.toContain("retired");
    expect(lab.userData(backing!.id).failed).toBe(false);
  });
});
