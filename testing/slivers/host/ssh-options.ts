/** Without a terminal, to nobody who is not known. */
export const SSH_OPTIONS = [
  "BatchMode=yes",
  "StrictHostKeyChecking=yes",
  "ConnectTimeout=120",
  "ServerAliveInterval=60",
  "ServerAliveCountMax=10",
  "LogLevel=ERROR",
].flatMap((option) => ["-o", option]);
