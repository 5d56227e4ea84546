-- moves between the nodes of a cluster are complete
select
    'warning' as severity,
    format(
        'a move to node %s was interrupted %s ago: %s threads were moved, or were about to be, and their rows are still here',
        moved.node, date_trunc('second', now() - min(moved.moved_at)), count(*)
    ) as problem,
    'pgagui cluster rebalance, or any other move, finishes it; until then some of these threads may not be available' as advice
from agui_internal.moved_thread as moved
join agui.thread as thread
    on thread.thread_key = moved.thread_key
where moved.node <> agui_internal.this_node() and moved.moved_at < now() - interval '1 minute'
group by moved.node
union all
-- A restored dump has the table and not always the function.
select
    'error',
    format('this database is node %s of a cluster, but does not check which threads it has', node.name),
    'call agui.grant_access() as the owner'
from agui_internal.node as node
where agui_internal.this_node() is distinct from node.name
