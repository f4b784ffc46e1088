import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AccountSockets, type SocketAccount } from "../../src/api/edge/account-sockets.ts";
import { sliver } from "./rig.ts";

const uid = process.getuid!();

describe("sockets of accounts", () => {
  let folder: string;
  let sockets: AccountSockets;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "nodeyard-sockets-"));
    sockets = await open();
  });
  afterEach(async () => {
    await sockets.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const open = async () => {
    const all = new AccountSockets(join(folder, "run"), ({ account, generation }) =>
      createServer((_, response) => void response.end(`${account} ${generation}`)),
    );
    await all.prepare();
    return all;
  };
  /** With a folder of its own, as a sliver sees it from inside. */
  const inside = (name: string, incarnation: number, generation = 1): SocketAccount => ({
    caller: sliver(name, generation),
    uid,
    folder: join(folder, `${name}.${incarnation}`, "api"),
  });
  const place = (one: SocketAccount) => join(one.folder!, "api.sock");
  const make = (one: SocketAccount) => {
    mkdirSync(one.folder!, { recursive: true });
    return one;
  };

  test("in a folder of the sliver's: its user's alone, and nothing else is left there", async () => {
    const ada = make(inside("ada", 1));
    await sockets.apply([ada, { caller: sliver("bob"), uid }]);
    expect(await ask(place(ada))).toBe("ada 1");
    expect(await ask(join(folder, "run", "bob", "api.sock"))).toBe("bob 0");
    expect(statSync(place(ada)).mode & 0o777).toBe(0o600);
    expect(existsSync(`${ada.folder}.new`)).toBe(false);
    expect(existsSync(join(folder, "run", "ada"))).toBe(false);
  });

  test("are made anew, with their folders, after another program removed them", async () => {
    const ada = { caller: sliver("ada"), uid };
    await sockets.apply([ada]);
    rmSync(join(folder, "run"), { recursive: true });
    await sockets.apply([ada]);
    expect(await ask(join(folder, "run", "ada", "api.sock"))).toBe("ada 0");
    expect(statSync(join(folder, "run")).mode & 0o777).toBe(0o755);
    expect(statSync(join(folder, "run", ".new")).mode & 0o777).toBe(0o700);
  });

  test("an obstacle at one socket does not close the others, and is tried again", async () => {
    const ada = inside("ada", 1);
    const bob = make(inside("bob", 2));
    const eve = make(inside("eve", 3));
    // A folder where its socket is to be: it cannot be replaced by one.
    mkdirSync(place(bob));
    writeFileSync(join(place(bob), "x"), "");
    await expect(sockets.apply([ada, bob, eve])).rejects.toThrow();
    expect(await ask(place(eve))).toBe("eve 1");
    expect(existsSync(place(ada))).toBe(false);
    rmSync(place(bob), { recursive: true });
    make(ada);
    await sockets.apply([ada, bob, eve]);
    for (const one of [ada, bob, eve]) expect(await ask(place(one))).toBe(`${one.caller.account} 1`);
  });

  test("another incarnation and another generation have another socket", async () => {
    const [first, second] = [make(inside("ada", 1)), make(inside("ada", 2))];
    await sockets.apply([first]);
    await sockets.apply([second]);
    expect(await ask(place(second))).toBe("ada 1");
    expect(existsSync(place(first))).toBe(false);
    await sockets.apply([inside("ada", 2, 7)]);
    expect(await ask(place(second))).toBe("ada 7");
  });

  test("a sliver that is made again in its old place is served there, and old connections are not", async () => {
    const ada = make(inside("ada", 1));
    await sockets.apply([ada]);
    const before = connect(place(ada));
    const ended = new Promise((resolve) => before.once("close", resolve));
    await new Promise((resolve) => before.once("connect", resolve));
    rmSync(join(folder, "ada.1"), { recursive: true });
    make(ada);
    await sockets.apply([ada]);
    expect(await ask(place(ada))).toBe("ada 1");
    await ended;
    // The same of a socket outside of slivers.
    const bob = { caller: sliver("bob"), uid };
    await sockets.apply([ada, bob]);
    const outside = join(folder, "run", "bob", "api.sock");
    rmSync(outside);
    await sockets.apply([ada, bob]);
    expect(await ask(outside)).toBe("bob 0");
  });

  test("the folder outlives a manager, so that what is mounted of it stays the same", async () => {
    const ada = make(inside("ada", 1));
    chmodSync(ada.folder!, 0o755);
    const { ino } = statSync(ada.folder!);
    await sockets.apply([ada]);
    await sockets.close();
    expect(existsSync(place(ada))).toBe(false);
    sockets = await open();
    await sockets.apply([ada]);
    expect(await ask(place(ada))).toBe("ada 1");
    expect(statSync(ada.folder!).ino).toBe(ino);
  });
});

function ask(socketPath: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath, method: "POST", path: "/" }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.on("end", () => resolve(text));
    });
    call.on("error", reject).end();
  });
}
