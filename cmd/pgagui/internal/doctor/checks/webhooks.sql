-- the endpoints of webhooks take their requests
select
    'warning' as severity,
    format(
        'webhook %s %s', state.name,
        case
            when state.is_elsewhere then 'sends nothing: this database is a copy of the one that does'
            when state.disabled_because is not null then 'is disabled: ' || state.disabled_because
            when state.failed > 0 then format('has %s requests that failed for good, and %s that are repeated', state.failed, state.retrying)
            else format('has %s requests that failed and are repeated', state.retrying)
        end
    ) as problem,
    format(
        case
            when state.is_elsewhere then 'if this database has replaced the other one, pgagui webhook take-over %1$s; if not, pgagui webhook set %1$s --enabled=false'
            when state.disabled_because is not null then 'pgagui webhook set %1$s --enabled, or pgagui webhook rm %1$s'
            else 'pgagui webhook failures %1$s says why; then pgagui webhook failures %1$s --retry, or --drop'
        end,
        state.name
    ) as advice
from agui_internal.webhook_states() as state
where state.disabled_because is not null or state.enabled and (state.is_elsewhere or state.failed > 0 or state.retrying > 0)
