import { join } from "node:path";
import { expect, test } from "vitest";
import { LxdServer, requireLxd } from "../../../../testing/lxd/index.ts";
import type { Step } from "../../../../testing/pages/steps.ts";
import { patient } from "../../../../testing/patience.ts";
import { follow, inFolder } from "../../cli/test/pages/guide.ts";

const LIMIT_MS = patient(600_000);

test.skipIf(requireLxd() !== undefined)("one-big-machine-with-lxd.md", { timeout: LIMIT_MS }, () =>
  inFolder(async (folder) => {
    // A server of images is another LXD here: Ubuntu's is out of reach.
    const [server, images] = await Promise.all([
      LxdServer.start({ bare: true }),
      LxdServer.start({ bare: true }),
    ]);
    try {
      await images.listen();
      await images.addImage("default", "22.04", true);
      const certificate = join(images.folder, "lxd/server.crt");
      const remote = [
        (await server.linkTo(images))[1],
        "remote-protocol: lxd",
        `remote-certificate: ${certificate}`,
      ];
      const names = {
        "lxd init --auto": `export LXD_DIR=${server.folder}/lxd\nlxd init --auto`,
        "/var/lib/lxd/unix.socket": server.socket,
        "https://cloud-images.ubuntu.com/releases": remote.join("\n        "),
      };
      // The server is in namespaces of its own: its bridge is a machine away.
      const before = async ({ commands }: Step) => {
        if (commands.includes("ssh-keygen")) await server.route();
      };
      await follow("one-big-machine-with-lxd.md", names, folder, before, () =>
        expect.poll(() => server.call("GET", "/1.0/instances"), { timeout: LIMIT_MS }).toEqual([]),
      );
    } finally {
      await Promise.all([server.stop(), images.stop()]);
    }
  }),
);
