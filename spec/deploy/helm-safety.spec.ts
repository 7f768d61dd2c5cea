/**
 * What the chart's pods may do, and whom they reach: computed from the rendered objects, as a cluster would.
 */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { environmentOf, only, read, serverOf, useChart } from '../support/chart.ts';
import { podLabelsOf, podSpecOf } from '../support/kube-objects.ts';
import { skipLoudly } from '../support/skip.ts';

describe('what the chart lets pods do', function () {
  this.timeout(120_000);
  const chart = useChart();

  it('restricts every pod, and gives the cluster’s token to servers of pods alone', () => {
    for (const [name, objects] of chart.both()) {
      const pods = objects.filter((object) => podSpecOf(object) !== undefined);
      expect(pods.length).to.be.at.least(3);
      for (const object of pods) {
        const [pod, where] = [podSpecOf(object), `${name}: ${object.kind} ${object.metadata.name}`];
        expect(pod.securityContext, where).to.deep.include({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
        expect(pod.enableServiceLinks, `${where}: HEPH_PORT would be tcp://…`).to.equal(false);
        const talksToCluster = object.kind === 'Deployment' && name === 'full';
        expect(pod.automountServiceAccountToken, where).to.equal(talksToCluster);
        for (const flag of ['hostNetwork', 'hostPID', 'hostIPC']) expect(pod, where).to.not.have.property(flag);
        for (const volume of pod.volumes ?? []) expect(Object.keys(volume), where).to.have.members(['name', 'emptyDir']);
        for (const container of pod.containers) {
          const want = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } };
          expect(container.securityContext, where).to.deep.equal(want);
          expect(container.resources.requests, where).to.have.all.keys('cpu', 'memory');
          expect(container.resources.limits, where).to.include.keys('memory');
          expect(container.image, where).to.match(/(:0\.1\.0|@sha256:[0-9a-f]{64})$/);
        }
      }
    }
  });

  it('holds no secret, and names each by the one that was made beforehand', () => {
    for (const [name, objects] of chart.both()) {
      expect(objects.filter(({ kind }) => kind === 'Secret')).to.deep.equal([]);
      for (const { name: variable, value, valueFrom } of serverOf(objects).env) {
        expect(value, variable).to.equal(undefined);
        expect(valueFrom.secretKeyRef, `${name}: ${variable}`).to.have.all.keys('name', 'key');
      }
    }
    expect(serverOf(chart.full).env.map(({ name }: { name: string }) => name)).to.include.members([
      'HEPH_SECRET_KEY_OLD',
      'HEPH_SLACK_CLIENT_SECRET',
    ]);
  });

  describe('between pods', () => {
    const matches = (selector: Readonly<Record<string, string>> | undefined, labels: Readonly<Record<string, string>>) =>
      Object.entries(selector ?? {}).every(([key, value]) => labels[key] === value);

    /** Egress rules of every policy that selects pods with these labels, in this namespace. */
    function egressOf(labels: Readonly<Record<string, string>>, namespace: string): readonly object[] | null {
      const policies = chart.full.filter(
        ({ kind, metadata, spec }) =>
          kind === 'NetworkPolicy' &&
          ((metadata as { namespace?: string }).namespace ?? 'forge') === namespace &&
          matches(spec.podSelector.matchLabels, labels) &&
          spec.policyTypes.includes('Egress'),
      );
      return policies.length === 0 ? null : policies.flatMap(({ spec }) => spec.egress ?? []);
    }

    const toServers = {
      ports: [{ protocol: 'TCP', port: 8081 }],
      to: [
        {
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'forge' } },
          podSelector: {
            matchLabels: {
              'app.kubernetes.io/name': 'heph',
              'app.kubernetes.io/instance': 'heph',
              'app.kubernetes.io/component': 'server',
            },
          },
        },
      ],
    };

    it('a sandbox reaches the gateway, and nothing else', () => {
      const sandbox = only(chart.full, 'SandboxTemplate');
      expect(egressOf(podLabelsOf(sandbox), 'heph-sandboxes')).to.deep.equal([toServers]);
      expect(sandbox['spec'].networkPolicy).to.deep.equal({ ingress: [], egress: [toServers] });
      const pod = podSpecOf(sandbox);
      expect(pod).to.deep.include({ dnsPolicy: 'None', runtimeClassName: 'gvisor', automountServiceAccountToken: false });
      const agent = only(chart.full, 'Service', 'heph-agent')['spec'];
      expect(agent).to.deep.include({ clusterIP: '10.96.0.40', selector: toServers.to[0]?.podSelector.matchLabels });
      expect(environmentOf(chart.full)['HEPH_KUBERNETES_AGENT_URL']).to.equal('http://10.96.0.40:8081');
      expect(podLabelsOf(only(chart.full, 'Deployment'))).to.include(agent.selector);
    });

    it('nobody is reached whom no rule names', () => {
      for (const object of chart.full.filter((one) => podSpecOf(one) !== undefined)) {
        const namespace = object.kind === 'SandboxTemplate' ? 'heph-sandboxes' : 'forge';
        expect(egressOf(podLabelsOf(object), namespace), object.metadata.name).to.not.equal(null);
      }
      const servers = only(chart.full, 'NetworkPolicy', 'heph-server')['spec'];
      const agent = servers.ingress.find(({ ports }: { ports: { port: string }[] }) => ports[0]?.port === 'agent');
      expect(agent.from, 'of sandboxes alone').to.have.length(1);
      expect(agent.from[0].podSelector.matchLabels).to.include({ 'app.kubernetes.io/component': 'sandbox' });
      for (const { from } of servers.ingress) expect(from).to.be.an('array').that.is.not.empty;
      const wide = servers.egress[1].to.find(({ ipBlock }: { ipBlock: { cidr: string } }) => ipBlock.cidr === '0.0.0.0/0');
      expect(wide.ipBlock.except, 'nobody asks the node who it is').to.deep.equal(['169.254.0.0/16']);
    });

    it('a server may do with sandboxes what its host does, and nothing else', () => {
      const { rules } = only(chart.full, 'Role') as unknown as { rules: object[] };
      expect(rules).to.deep.equal([
        {
          apiGroups: ['extensions.agents.x-k8s.io'],
          resources: ['sandboxclaims'],
          verbs: ['create', 'get', 'list', 'watch', 'patch', 'delete'],
        },
        { apiGroups: ['agents.x-k8s.io'], resources: ['sandboxes'], verbs: ['get', 'list', 'watch', 'patch'] },
        { apiGroups: [''], resources: ['pods/exec'], verbs: ['create', 'get'] },
      ]);
      expect(only(chart.full, 'RoleBinding')['subjects']).to.deep.equal([{ kind: 'ServiceAccount', name: 'heph', namespace: 'forge' }]);
      expect(chart.full.filter(({ kind }) => kind.startsWith('Cluster'))).to.deep.equal([]);
    });
  });

  it('starts a runner as its server looks for it', function () {
    const host = 'sandbox-runner/host/kubernetes/bring-up.ts';
    if (!existsSync(new URL(`../../${host}`, import.meta.url))) skipLoudly(this, 'this Heph has no host for pods');
    const [container] = podSpecOf(only(chart.full, 'SandboxTemplate')).containers;
    const [flag, socket] = container.args;
    expect(flag).to.equal('--socket');
    expect(read(host)).to.include(`container: '${container.name}'`).and.include(`socket: '${socket}'`);
    expect(container.volumeMounts.map(({ mountPath }: { mountPath: string }) => mountPath))
      .to.include(path.dirname(socket))
      .and.include('/workspace');
    expect(environmentOf(chart.full)['HEPH_KUBERNETES_WARM_POOL']).to.equal(only(chart.full, 'SandboxWarmPool').metadata.name);
    expect(only(chart.full, 'SandboxWarmPool')['spec'].sandboxTemplateRef.name).to.equal(only(chart.full, 'SandboxTemplate').metadata.name);
  });
});
