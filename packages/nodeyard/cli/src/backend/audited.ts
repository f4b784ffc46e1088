import type { CommandChange } from "@nodeyard/model";
import type { Backend } from "./backend.ts";

/**
 * A backend on the tree whose changes are noted for the audit, refused ones included, under the names that REST v1 has for them. Noted before
 * the command prints its result, as a server does before it answers. Rejects as the backend does. `note` never rejects: what was changed is
 * no error because it could not be noted, and a script that repeats it would ask for its nodes twice.
 */
export function audited(
  backend: Backend,
  who: string,
  note: (change: CommandChange) => Promise<void>,
): Backend {
  async function noted<T>(
    action: string,
    subject: string,
    work: Promise<T>,
    why: string | null = null,
  ): Promise<T> {
    const entry = { who, action, subject, why };
    const result = await work.catch(async (error: unknown) => {
      await note({ ...entry, status: 409 });
      throw error;
    });
    await note({ ...entry, status: 200 });
    return result;
  }
  return {
    ...backend,
    request: (options) => noted("create_lease", "", backend.request(options)),
    release: (lease) => noted("release_lease", lease, backend.release(lease)),
    hold: (node, options) => noted("hold_node", node, backend.hold(node, options), options.comment),
    deleteNode: (node, now) => noted("delete_node", node, backend.deleteNode(node, now)),
    forgetNode: (node) => noted("forget_node", node, backend.forgetNode(node)),
    erase: (provider, force) => noted("erase_provider", provider, backend.erase(provider, force)),
    requestBuild: (image) => noted("build_image", image, backend.requestBuild(image)),
    pauseImage: (image, paused) =>
      noted(paused ? "pause_image" : "unpause_image", image, backend.pauseImage(image, paused)),
    deleteBuild: (image, build) =>
      noted("delete_build", `${image}/${build}`, backend.deleteBuild(image, build)),
    deleteUpload: (at) =>
      noted(
        "delete_upload",
        [at.image, at.build, at.provider, at.upload].join("/"),
        backend.deleteUpload(at),
      ),
    importImages: (all) => noted("import_image_data", "", backend.importImages(all)),
    retire: (node, why) => noted("retire_node", node, backend.retire(node, why), why),
    createToken: (wanted) => noted("create_token", "", backend.createToken(wanted)),
    revokeToken: (name, by) => noted("revoke_token", name, backend.revokeToken(name, by)),
  };
}
