import type { Random } from "@nodeyard/runtime";
import { ignoreExisting, orUndefined, SessionExpired, type Tree, TreeError } from "@nodeyard/tree";

/** Version of the layout under /nodeyard. A process refuses a newer one, because each member must be able to read all records. */
export const LAYOUT = 1;

/** Each Nodeyard process has an ephemeral znode here, whose name ends in its session id. Python launchers have none. */
export const MEMBERS = "/nodeyard/members";

/**
 * Makes or reads what belongs to the installation as a whole: its UUID (every resource we make carries it) and the layout version. The
 * UUID is made once; all launchers of one tree share it. Rejects with a TreeError: `launcher.newer_layout`,
 * `launcher.bad_installation`, or that of a call. May be repeated.
 */
export async function openInstallation(tree: Tree, random: Random): Promise<string> {
  await tree.create("/nodeyard").catch(ignoreExisting);
  const layout = await ensure(tree, "/nodeyard/layout", JSON.stringify({ v: LAYOUT }));
  const version = (JSON.parse(layout) as { v?: unknown }).v;
  if (typeof version !== "number" || version > LAYOUT) {
    throw new TreeError(
      "launcher.newer_layout",
      `/nodeyard/layout says version ${JSON.stringify(version)}, this Nodeyard reads up to ${LAYOUT}: start a newer Nodeyard`,
    );
  }
  const text = await ensure(tree, "/nodeyard/installation", JSON.stringify({ v: 1, id: random.uuid() }));
  return idIn(text);
}

/** The UUID, if there is one; makes nothing. For commands, which must not turn an empty tree into an installation. */
export async function findInstallation(tree: Tree): Promise<string | undefined> {
  const found = await orUndefined(tree.get("/nodeyard/installation"));
  return found && idIn(Buffer.from(found.data).toString());
}

function idIn(text: string): string {
  const { id } = JSON.parse(text) as { id?: unknown };
  if (typeof id !== "string" || !/^[0-9a-f-]{36}$/.test(id)) {
    throw new TreeError(
      "launcher.bad_installation",
      `/nodeyard/installation holds ${text}, not an installation id: restore it from a backup`,
    );
  }
  return id;
}

/**
 * Announces, for as long as the session lives, which record versions this process can read and write. Always a write, because its reply
 * carries the tree's time. `member` contains the id of the current session; throws SessionExpired when that session has ended. Then call
 * again with a new name.
 */
export async function announceMember(tree: Tree, member: string, version: string): Promise<void> {
  const { id } = tree.session();
  await tree.create(MEMBERS).catch(ignoreExisting);
  const data = Buffer.from(JSON.stringify({ v: 1, version, reads: LAYOUT, writes: LAYOUT }));
  const path = `${MEMBERS}/${member}`;
  const made = await tree.create(path, data, { ephemeral: true }).catch(ignoreExisting);
  const stat = made?.stat ?? (await orUndefined(tree.set(path, data)));
  if (stat?.ephemeralOwner === id) return;
  // A create that waited for the connection ran in the next session, which has another member name.
  if (stat !== undefined) await orUndefined(tree.delete(path));
  throw new SessionExpired(`the announcement of ${member}`);
}

/** The text of a znode, made with `text` where there is none: of several processes at once the first decides. */
async function ensure(tree: Tree, path: string, text: string): Promise<string> {
  await tree.create(path, Buffer.from(text)).catch(ignoreExisting);
  return Buffer.from((await tree.get(path)).data).toString();
}
