"""A nova hypervisor (the stock fake one, plus latency and faults), a neutron mechanism driver that binds every port,
and a WSGI filter that delays or refuses API requests and notes what nova answered (see nodeyard_project)."""
import io
import json
import re
import time

from nodeyard_project import delay, faults, happens, note


class Api:
    """paste filter, behind authtoken: the project is known"""
    def __init__(self, app, service):
        self.app, self.service = app, service

    def __call__(self, environ, start_response):
        project = environ.get('HTTP_X_PROJECT_ID', '')
        at, told = time.time(), {}

        def start(status, headers, *more):
            told['status'] = int(status.split(' ')[0])
            return start_response(status, headers, *more)

        answer = self.refused(project, environ, start)
        if answer is None:
            answer = self.app(environ, start)
        if project and self.service == 'nova':
            note(project, call=environ['REQUEST_METHOD'], path=path_of(environ), began=at, **told)
        return answer

    def refused(self, project, environ, start):
        for r in faults(project).get('api', ()):
            if (r.get('service', self.service) == self.service
                    and r.get('method', environ['REQUEST_METHOD']) == environ['REQUEST_METHOD']
                    and re.search(r.get('path', ''), path_of(environ)) and happens(r.get('rate', 1))):
                delay(r.get('delay'))
                if r.get('status'):
                    body = json.dumps({'error': {'code': r['status'], 'message': r.get('message', 'injected fault')}}).encode()
                    start('%d Injected' % r['status'], [
                        ('Content-Type', 'application/json'), ('Content-Length', str(len(body)))]
                        + [(k, str(v)) for k, v in r.get('headers', {}).items()])
                    return [body]


def path_of(environ):
    return environ.get('SCRIPT_NAME', '') + environ['PATH_INFO']


def api_filter(global_conf, service, **conf):
    return lambda app: Api(app, service)


def nova_module():
    import types
    from nova import exception
    from nova.conf import CONF
    from nova.virt import fake

    class Driver(fake.FakeDriver):
        vcpus = 1000
        memory_mb = 2000000
        local_gb = 600000

        def spawn(self, context, instance, image_meta, *a, **kw):
            f = faults(instance.project_id, CONF.host)
            delay(f.get('spawn_delay'))
            if happens(f.get('spawn_error_rate', 0)):
                raise exception.BuildAbortException(
                    instance_uuid=instance.uuid,
                    reason=f.get('spawn_error', 'injected spawn fault'))
            return super().spawn(context, instance, image_meta, *a, **kw)

        def destroy(self, context, instance, *a, **kw):
            f = faults(instance.project_id, CONF.host)
            delay(f.get('destroy_delay'))
            if happens(f.get('destroy_error_rate', 0)):
                raise exception.InstanceTerminationFailure(
                    reason=f.get('destroy_error', 'injected destroy fault'))
            return super().destroy(context, instance, *a, **kw)

        def snapshot(self, context, instance, image_id, update_task_state):
            super().snapshot(context, instance, image_id, update_task_state)
            from nova.image import glance
            from oslo_utils import units
            glance.API().update(context, image_id, {
                'disk_format': 'raw', 'container_format': 'bare', 'size': 64 * units.Ki,
                'name': glance.API().get(context, image_id)['name']},
                io.BytesIO(b'nodeyard snapshot\n'.ljust(64 * units.Ki, b'\0')), purge_props=False)

        def get_console_output(self, context, instance):
            return b'FAKE CONSOLE OUTPUT\n'

    m = types.ModuleType('nova.virt.nodeyard')
    m.Driver = Driver
    return m


def note_freed():
    """nova counts a server until its row is marked as deleted; that is done by this call alone, in the API or the conductor."""
    from nova.objects import instance
    destroy = instance.Instance.destroy

    def noted(self, *a, **kw):
        project, server = self.project_id, self.uuid
        result = destroy(self, *a, **kw)
        note(project, freed=server)
        return result

    instance.Instance.destroy = noted


def ml2_driver():
    from neutron_lib import constants
    from neutron_lib.api.definitions import portbindings
    from neutron_lib.plugins.ml2 import api

    class MechanismDriver(api.MechanismDriver):
        def initialize(self):
            pass

        @property
        def connectivity(self):
            return portbindings.CONNECTIVITY_L2

        def bind_port(self, context):
            if happens(faults(context.current['project_id']).get('bind_error_rate', 0)):
                return
            context.set_binding(context.segments_to_bind[0][api.ID],
                                portbindings.VIF_TYPE_OTHER,
                                {portbindings.CAP_PORT_FILTER: True},
                                status=constants.PORT_STATUS_ACTIVE)

    return MechanismDriver


def __getattr__(name):
    if name == 'MechanismDriver':
        return ml2_driver()
    raise AttributeError(name)
