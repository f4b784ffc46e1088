/** Metadata of every API object (Kubernetes API conventions, "Metadata"). */
export interface KubeObject {
  readonly metadata: {
    readonly name: string;
    /** Absent for objects without a namespace, such as namespaces themselves. */
    readonly namespace?: string;
    /** Unique over time, unlike the name: a new object of the same name has another one. */
    readonly uid: string;
    /** Increases with each change of any object of the server (`versionOf` in watch.ts). */
    readonly resourceVersion: string;
    /** RFC 3339, as the server's clock says. */
    readonly creationTimestamp?: string;
    /** Set when the deletion has begun; the object exists until its finalizers and containers have ended. */
    readonly deletionTimestamp?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
}

/** One page of a list. `continue` is empty or absent on the last one. `resourceVersion` is the version of the whole list, on each page. */
export interface List<T> {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly T[];
}

/** A condition of a status. `status` is "True", "False" or "Unknown". */
export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

/** State of a container. It is waiting, running or terminated; only the two that explain a failure are read. */
export interface ContainerStatus {
  readonly name: string;
  readonly state?: {
    readonly waiting?: { readonly reason?: string; readonly message?: string };
    readonly terminated?: { readonly reason?: string; readonly exitCode?: number; readonly message?: string };
  };
}

/** The fields of a pod that are read (https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/). */
export interface Pod extends KubeObject {
  readonly spec: {
    /** Node of the cluster; absent until the scheduler has chosen one. */
    readonly nodeName?: string;
    readonly containers: readonly PodContainer[];
  };
  readonly status?: {
    /** "Pending", "Running", "Succeeded", "Failed" or "Unknown". */
    readonly phase?: string;
    readonly reason?: string;
    readonly message?: string;
    readonly conditions?: readonly Condition[];
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
  };
}

/** Amounts as Kubernetes quantities: "500m", "2Gi", 1 (`quantity` in amounts.ts). */
export interface PodContainer {
  readonly name?: string;
  readonly resources?: {
    readonly requests?: Readonly<Record<string, string | number>>;
    readonly limits?: Readonly<Record<string, string | number>>;
  };
}

/**
 * All pages of a list. Rejects when a page fails: a partial list would make existing objects look deleted. All pages show the
 * collection as it was at `version`, from which a watch can begin.
 */
export async function listAll<T>(
  page: (query: Readonly<Record<string, string>>) => Promise<List<T>>,
  query: Readonly<Record<string, string>> = {},
): Promise<{ readonly items: readonly T[]; readonly version: string }> {
  const items: T[] = [];
  for (let next = ""; ; ) {
    const { metadata, items: some } = await page({
      ...query,
      limit: PAGE,
      ...(next === "" ? {} : { continue: next }),
    });
    items.push(...some);
    next = metadata.continue ?? "";
    if (next === "") return { items, version: metadata.resourceVersion };
  }
}

/** Objects per page: bounds the size of one answer, and the server's work for it. */
const PAGE = "1000";
