# One server: docker build -f deploy/server.Dockerfile -t heph-server:0.1.0 .
# The version is that of the development tools (package.json); add a digest for a build that nobody else can change.
ARG NODE_IMAGE=node:24.21.0-bookworm-slim

FROM ${NODE_IMAGE} AS page
WORKDIR /opt/heph
COPY package.json package-lock.json .npmrc tsconfig.json ./
RUN npm ci
COPY src ./src
RUN npm run build

FROM ${NODE_IMAGE} AS packages
WORKDIR /opt/heph
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev && npm cache clean --force

FROM ${NODE_IMAGE}
# git: repositories that turns load. bubblewrap, util-linux: sandboxes inside of the container, where it may make user namespaces.
RUN apt-get update \
  && apt-get install -y --no-install-recommends bubblewrap ca-certificates git tini util-linux \
  && rm -rf /var/lib/apt/lists/* \
  && groupadd --gid 10001 heph \
  && useradd --uid 10001 --gid 10001 --home-dir /var/lib/heph --create-home --shell /usr/sbin/nologin heph \
  && ln -s /opt/heph/bin/heph /usr/local/bin/heph
WORKDIR /opt/heph
COPY --from=packages /opt/heph/node_modules ./node_modules
COPY --from=page /opt/heph/dist ./dist
COPY package.json LICENSE ./
COPY bin ./bin
COPY actors ./actors
COPY db ./db
COPY sandbox-runner ./sandbox-runner
COPY src ./src
ENV NODE_ENV=production HEPH_DATA_DIR=/var/lib/heph
USER 10001:10001
VOLUME /var/lib/heph
EXPOSE 8080 8081 9090
# The root file system may be read-only: only the volume and /tmp are written.
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.HEPH_OPS_PORT || 9090) + '/readyz').then((a) => process.exit(a.ok ? 0 : 1), () => process.exit(1))"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["tini", "--", "node", "--max-semi-space-size=16", "src/main.ts"]
CMD ["start"]
