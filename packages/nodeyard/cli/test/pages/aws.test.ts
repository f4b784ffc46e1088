import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { userInfo } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { type AwsServer, motoPython, requireAws, startAws } from "../../../../../testing/aws/index.ts";
import { patient } from "../../../../../testing/patience.ts";
import { requireSshd, startSshd } from "../../../../../testing/sshd/index.ts";
import { freePort } from "../../../../../testing/zookeeper/index.ts";
import { type Granted, Site } from "../nodeyard.ts";
import { follow, inFolder } from "./guide.ts";

const LIMIT_MS = patient(600_000);
const DEBIAN = "136693071363";
/** The account of every caller of the double. */
const ACCOUNT = "123456789012";
/** An instance has an address of its own here, where the SSH server listens. */
const ADDRESSES = "127.61.";

test.skipIf(requireAws() ?? requireSshd())("connect-aws.md", () =>
  inFolder(async (folder) => {
    const port = await freePort();
    const aws = await startAws();
    const guest = await startSshd({ config: [`ListenAddress 0.0.0.0:${port}`] });
    const checkip = createServer((_, answer) => answer.end("127.0.0.1\n"));
    await new Promise<void>((resolve) => checkip.listen(0, "127.0.0.1", resolve));
    const site = new Site("");
    const config = join(folder, "nodepool.yaml");
    try {
      await prepare(aws, folder);
      const names = {
        "https://checkip.amazonaws.com": `http://127.0.0.1:${(checkip.address() as AddressInfo).port}`,
        [DEBIAN]: ACCOUNT,
        "username: admin": `username: ${userInfo().username}\n        connection-port: ${port}`,
      };
      /** With the user's state folder, as the commands of the page have it. */
      const json = <T>(...words: string[]) =>
        site.json<T>("--state", join(folder, ".nobody"), "-c", config, ...words);
      await follow(
        "connect-aws.md",
        names,
        folder,
        async ({ commands }) => {
          if (commands.includes("nodeyard run")) authorize(join(folder, "nodes.pem"), guest.folder);
        },
        async () => {
          // The notices reach a launcher whose provider has the URL that the page has printed.
          const [, queue] = /^declare -x QUEUE="(.*)"$/m.exec(
            readFileSync(join(folder, ".exported"), "utf8"),
          )!;
          const text = readFileSync(config, "utf8");
          writeFileSync(
            config,
            text
              .replace("    rate: 2\n", `    rate: 2\n    notice-queue: ${queue}\n`)
              .replace(
                "            key-name: nodes\n",
                "            key-name: nodes\n            use-spot: true\n",
              ),
          );
          // Nodes of before the launcher has read the file again are of machines on demand, which are not taken back.
          let node = "";
          const interrupt = async () => {
            const { lease, nodes } = await json<Granted>("request", "debian", "--wait");
            node = nodes[0]!.id;
            const machine = (await aws.machines()).find((one) => one.node === node);
            const { found } = await aws.interrupt(machine!.id, "terminate", LIMIT_MS);
            if (!found) await json("release", lease);
            return found;
          };
          await expect.poll(interrupt, { timeout: patient(120_000) }).toBe(true);
          const story = async () => JSON.stringify(await json("explain", node));
          await expect.poll(story, { timeout: patient(60_000) }).toContain("takes the spot machine");
        },
      );
    } finally {
      checkip.close();
      await site.close();
      await guest.stop();
      await aws.close();
    }
  }),
);

/** What the reader's shell has before the page: the command line, an administrator's credentials; and what AWS has: Debian's image. */
async function prepare(aws: AwsServer, folder: string): Promise<void> {
  await aws.set({ addresses: ADDRESSES });
  const program = join(dirname(motoPython()), "aws");
  const bin = join(folder, "bin");
  mkdirSync(bin);
  // Version 1 of the command line knows an address of SQS of its own, for which AWS_ENDPOINT_URL does not count.
  writeFileSync(join(bin, "aws"), `#!/bin/sh\nexec ${program} --endpoint-url ${aws.url} "$@"\n`, {
    mode: 0o755,
  });
  const lines = Object.entries(aws.env).map(([name, value]) => `export ${name}=${value}\n`);
  appendFileSync(join(folder, ".exported"), `${lines.join("")}export PATH="${bin}:$PATH"\n`);
  const image = ["--name", "debian-13-amd64-20260101-1", "--root-device-name", "/dev/xvda"];
  execFileSync(program, ["ec2", "register-image", "--region", "eu-central-1", ...image], {
    env: { ...process.env, ...aws.env },
  });
}

/** EC2 puts the key pair's public half into an instance. */
function authorize(identity: string, guest: string): void {
  writeFileSync(join(guest, "authorized_keys"), execFileSync("ssh-keygen", ["-y", "-f", identity]));
}
