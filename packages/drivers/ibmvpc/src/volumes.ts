import { type CloudPart, tagOf } from "@nodeyard/driver";
import type { Ibm } from "./ibm.ts";
import type { Named, Names } from "./names.ts";

/** A volume, as far as the driver reads it. */
interface Volume extends Named {
  readonly volume_attachments?: readonly { readonly instance?: { readonly id?: string } }[];
}

/** Boot volumes, which go with their machine unless somebody changed that. */
export function volumesOf(ibm: Ibm, names: Names): CloudPart {
  return {
    list: async (signal) =>
      (await ibm.list<Volume>("/volumes", signal)).map((volume) => {
        const { id, volume_attachments: on = [] } = volume;
        return {
          id,
          on: on.map(({ instance }) => instance?.id),
          tag: on.length === 0 ? tagOf(names.metadataOf(volume)) : null,
        };
      }),
    delete: (id, signal) => ibm.delete("volume", `/volumes/${encodeURIComponent(id)}`, signal),
  };
}
