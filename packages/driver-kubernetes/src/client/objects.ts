/** Metadata of every API object (Kubernetes API conventions, "Metadata"). */
export interface KubeObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly creationTimestamp?: string;
    readonly deletionTimestamp?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
}

export interface List<T> {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly T[];
}

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

export interface ContainerStatus {
  readonly name: string;
  readonly state?: {
    readonly waiting?: { readonly reason?: string; readonly message?: string };
    readonly terminated?: { readonly reason?: string; readonly exitCode?: number; readonly message?: string };
  };
}

export interface Pod extends KubeObject {
  readonly spec: {
    readonly nodeName?: string;
    readonly containers: readonly PodContainer[];
  };
  readonly status?: {
    readonly phase?: string;
    readonly reason?: string;
    readonly message?: string;
    readonly conditions?: readonly Condition[];
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
  };
}

export interface PodContainer {
  readonly resources?: {
    readonly requests?: Readonly<Record<string, string | number>>;
    readonly limits?: Readonly<Record<string, string | number>>;
  };
}

/** All pages of a list. Rejects when a page fails: a partial list would make existing objects look deleted. */
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

const PAGE = "1000";
