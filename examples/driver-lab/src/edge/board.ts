/**
 * The machine itself: a program that is started in its board's folder, greets each client, and outlives the launcher that started it. It
 * makes sure that a folder has only one process, and none after it was given up.
 */
import { existsSync, linkSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { identityOf } from "./process.ts";

process.on("uncaughtException", ({ message }) => {
  console.log(`cannot go on: ${message}`);
  process.exit(1);
});
const { hostname, greeting } = JSON.parse(readFileSync("wanted", "utf8")) as Record<string, string>;
const server = createServer((socket) => {
  console.log(`a connection from port ${socket.remotePort}`);
  socket.on("error", () => {});
  socket.end(`${hostname}: ${greeting}\n`);
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  const mine = `board-${process.pid}.json`;
  writeFileSync(mine, JSON.stringify({ pid: process.pid, identity: identityOf(process.pid), port }));
  try {
    // Fails if the board has a process already: then this one ends.
    linkSync(mine, "board.json");
  } finally {
    unlinkSync(mine);
  }
  // A process that gives the folder up first removes `wanted`, then looks for board.json: one of the two sees the other.
  if (!existsSync("wanted")) process.exit(1);
  console.log(`${hostname} listens on 127.0.0.1:${port}`);
});
