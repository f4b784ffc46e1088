import sys
conf, *hosts = sys.argv[1:]
import nova.monkey_patch  # noqa
from nova import config, context, objects
config.parse_args(['nova-manage', '--config-file', conf])
objects.register_all()
from nova.cmd.manage import CellV2Commands
from nova.db import migration
from nova.objects import cell_mapping, host_mapping
migration.db_sync(database='api')
cells = CellV2Commands()
cells.map_cell0()
ctx = context.get_admin_context()
c0 = cell_mapping.CellMapping.get_by_uuid(ctx, cell_mapping.CellMapping.CELL0_UUID)
with context.target_cell(ctx, c0) as cctx:
    migration.db_sync(context=cctx)
migration.db_sync()
cells.create_cell('cell1')
ctx = context.get_admin_context()
c1 = [c for c in cell_mapping.CellMappingList.get_all(ctx) if c.name == 'cell1'][0]
for host in hosts:
    host_mapping.HostMapping(ctx, host=host, cell_mapping=c1).create()
