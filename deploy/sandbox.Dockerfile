# One sandbox, for clusters: docker build -f deploy/sandbox.Dockerfile -t heph-sandbox:0.1.0 .
# It holds the runner, and the programs that an assistant may call. It knows no address and no secret: both come with its assignment.
ARG NODE_IMAGE=node:24.21.0-bookworm-slim

FROM ${NODE_IMAGE} AS packages
WORKDIR /opt/heph
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --omit=optional && npm cache clean --force

FROM ${NODE_IMAGE}
RUN apt-get update \
  && apt-get install -y --no-install-recommends \
    bubblewrap ca-certificates diffutils file git jq less patch procps python3 ripgrep tini unzip util-linux \
  && rm -rf /var/lib/apt/lists/* \
  && groupadd --gid 10001 heph \
  && useradd --uid 10001 --gid 10001 --home-dir /workspace --create-home --shell /bin/bash heph
# The working folder is the project: the server's exec runs sandbox-runner/assign.ts from it.
WORKDIR /opt/heph
COPY --from=packages /opt/heph/node_modules ./node_modules
COPY package.json LICENSE ./
COPY sandbox-runner ./sandbox-runner
COPY src/kernel ./src/kernel
COPY src/contract ./src/contract
ENV NODE_ENV=production
USER 10001:10001
STOPSIGNAL SIGTERM
ENTRYPOINT ["tini", "--", "node", "sandbox-runner/driver.ts"]
