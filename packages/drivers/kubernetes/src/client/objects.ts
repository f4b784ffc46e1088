import { allPages } from "@nodeyard/driver";
import type { PodSpec, PodStatus } from "kubernetes-types/core/v1.d.ts";
import type { ListMeta, ObjectMeta } from "kubernetes-types/meta/v1.d.ts";
import type { Connection } from "./connection.ts";

/**
 * What is read of a namespace, project or pod. Its uid is unique over time, unlike its name; its version increases with each change of any
 * object of the server. A namespace's status has a phase and conditions, as that of a pod.
 */
export interface KubeObject {
  readonly metadata: ObjectMeta & Required<Pick<ObjectMeta, "name" | "uid" | "resourceVersion">>;
  /** Of pods. */
  readonly spec?: PodSpec;
  readonly status?: PodStatus;
}

/** One page of a list. The version is that of the whole list, on each page. */
interface List<T> {
  readonly metadata: ListMeta;
  readonly items: readonly T[];
}

/** Objects per page: bounds the size of one answer, and the server's work for it. */
const PAGE = "1000";

/** All pages of a list, which show the collection as it was at `version`. Rejects when a page fails: what it has would look deleted. */
export async function listAll<T>(
  connection: Connection,
  path: string,
  signal: AbortSignal,
  query: Readonly<Record<string, string>> = {},
): Promise<{ readonly items: readonly T[]; readonly version: string | undefined }> {
  const read = (next: string | undefined) => {
    const more = next === undefined ? {} : { continue: next };
    return connection.get<List<T>>({ path, query: { ...query, limit: PAGE, ...more }, signal });
  };
  const pages = await allPages(`list of ${path}`, read, ({ metadata }) => metadata.continue);
  return { items: pages.flatMap(({ items }) => items), version: pages[0]!.metadata.resourceVersion };
}
